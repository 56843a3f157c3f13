"""What a phone decides without the box reaches it as it was decided, whatever happens meanwhile."""

import asyncio

_OFFLINE = "dispatchEvent(new Event('offline'))"
_TAKEN_BACK = "() => document.getElementById('verdict').dataset.result === 'undone'"


async def is_apart(phone):
    """Out of the box's reach, while the box goes on."""
    await phone.page.route("**/terminal/v1/**", lambda route: route.abort())
    await phone.page.evaluate(_OFFLINE)
    await phone.is_down()


async def is_back(phone):
    await phone.page.unroute("**/terminal/v1/**")
    await phone.page.evaluate("dispatchEvent(new Event('online'))")
    await phone.is_synced()


def what_is_synced(phone):
    sent = []
    phone.page.on(
        "request", lambda one: sent.append(one.post_data_json) if "/sync" in one.url else None
    )
    return sent


async def type_code(phone, text):
    """Type a code or a name: result and colour of the verdict."""
    if await phone.page.is_visible("#verdict"):
        await phone.page.keyboard.press("Escape")
        await phone.page.wait_for_selector("#verdict", state="hidden")
    await phone.page.click("#open-code")
    await phone.page.fill("#code", text)
    await phone.page.click("#code-form button[type=submit]")
    return await phone.result(), await phone.page.get_attribute("#verdict", "data-colour")


async def let_in_anyway(phone):
    await phone.page.click("#override")
    await phone.page.locator("#reasons [data-reason]").first.click()
    await phone.page.wait_for_selector("#verdict[data-colour=green]")


async def test_a_name_always_asks_which_one_and_who_is_picked_is_counted(door):
    guest = await door.guest(guests=4, customer_name="Benoit Martin")
    await door.guest(table="T2", customer_name="Sara Ben Ali")
    phone = await door.phone()
    await is_apart(phone)

    assert await type_code(phone, "ben") == ("ambiguous", "amber")
    await phone.page.click("#picks button")
    await phone.page.wait_for_selector("#verdict[data-result=checked_in]")
    await is_back(phone)

    assert (await door.now_of(guest)).arrived == 4
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(0,)]


async def test_one_letter_finds_nobody_and_a_family_name_is_no_red(door):
    await door.guest(customer_name="Benoit Martin")
    phone = await door.phone()
    await is_apart(phone)

    assert await type_code(phone, "b") == ("unknown_code", "red")
    assert await type_code(phone, "martin") == ("needs_box", "amber")
    assert await type_code(phone, "SVC-99ZZ") == ("unknown_code", "red")


async def test_a_code_that_last_evenings_list_has_not_is_no_red(door):
    guest = await door.guest(date="2026-11-22", access_code="SVC-7K2M")
    phone = await door.phone()
    await phone.page.evaluate("{const b = Date.now; Date.now = () => b() + 11.5 * 3600e3}")
    await is_apart(phone)

    assert guest.access_code == "SVC-7K2M"
    assert await type_code(phone, "7K2M") == ("needs_box", "amber")


async def test_who_was_let_in_by_a_code_is_told_by_reservation(door):
    guest = await door.guest(access_code="SVC-7K2M", guests=3)
    phone = await door.phone()
    await is_apart(phone)
    assert await type_code(phone, "7K2M") == ("checked_in", "green")
    sent = what_is_synced(phone)
    await is_back(phone)

    (scan,) = sent[0]["scans"]
    assert (scan["reservationId"], scan["code"]) == (guest.id, "7K2M")
    assert (await door.now_of(guest)).arrived == 3


async def test_one_more_of_a_party_that_is_in_counts_as_one(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    phone = await door.phone()
    assert await phone.scan(text) == "checked_in"
    await is_apart(phone)
    await phone.page.wait_for_timeout(3100)  # the same code counts again

    assert await phone.scan(text) == "already_checked_in"
    await let_in_anyway(phone)
    assert "5 / 4" in await phone.page.inner_text("#verdict-facts")
    sent = what_is_synced(phone)
    await is_back(phone)

    amber, green = sent[0]["scans"]
    assert (amber["shown"], "arrivals" in amber) == ("already_checked_in", False)
    assert (green["shown"], green["arrivals"]) == ("already_checked_in", 1)
    assert (await door.now_of(guest)).arrived == 5
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(0,)]


async def test_a_pass_on_no_list_may_be_let_in_with_a_reason_and_is_counted_once(door):
    phone = await door.phone()
    await is_apart(phone)
    guest = await door.guest(guests=3)
    text = await door.pass_of(guest)

    assert await phone.scan(text) == "unlisted"
    assert "0 / 3" in await phone.page.inner_text("#verdict-facts")
    await let_in_anyway(phone)
    await phone.page.wait_for_timeout(3100)
    assert await phone.scan(text) == "already_checked_in"
    await is_back(phone)

    assert (await door.now_of(guest)).arrived == 3
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(0,)]
    assert phone.complaints == []


async def test_an_undo_while_the_scan_is_on_its_way_reaches_the_box(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await is_apart(phone)
    assert await phone.scan(text) == "checked_in"
    at_the_box, go_on = asyncio.Event(), asyncio.Event()

    async def hold(route):
        answer = await route.fetch()
        at_the_box.set()
        await go_on.wait()
        await route.fulfill(response=answer)

    await phone.page.unroute("**/terminal/v1/**")
    await phone.page.route("**/terminal/v1/sync", hold)
    await phone.page.evaluate("dispatchEvent(new Event('online'))")
    await asyncio.wait_for(at_the_box.wait(), 60)
    await phone.page.click("#undo")
    await phone.until(_TAKEN_BACK)
    go_on.set()
    await phone.is_synced()

    assert (await door.now_of(guest)).arrived == 0


async def test_an_undo_after_an_answer_that_was_lost_reaches_the_box(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone()
    await is_apart(phone)
    assert await phone.scan(text) == "checked_in"
    lost = asyncio.Event()

    async def lose(route):
        await route.fetch()
        await route.abort()
        lost.set()

    await phone.page.unroute("**/terminal/v1/**")
    await phone.page.route("**/terminal/v1/sync", lose, times=1)
    await phone.page.evaluate("dispatchEvent(new Event('online'))")
    await asyncio.wait_for(lost.wait(), 60)
    await phone.page.route("**/terminal/v1/**", lambda route: route.abort())
    assert (await door.now_of(guest)).arrived == 2
    await phone.page.click("#undo")
    await phone.until(_TAKEN_BACK)
    await is_back(phone)

    assert (await door.now_of(guest)).arrived == 0
