"""Each verdict has its colour and stays until it is seen. Later scans wait."""

from itertools import pairwise

from appliance.door.verdict import COLOURS
from tests.browser.films import film, film_of_pictures, held_up
from tests.waiting import until

MENU = "HTTPS://MENU.EXAMPLE/CARTE"
WATCH = """() => {
  window.shown = [];
  const [verdict, waiting] = ["verdict", "waiting"].map((id) => document.getElementById(id));
  const note = () => shown.push({
    at: performance.now(), result: verdict.dataset.result,
  });
  new MutationObserver(note).observe(verdict, { attributeFilter: ["data-result"] });
  new MutationObserver(() => waiting.hidden || (window.waited = waiting.textContent))
    .observe(waiting, { attributes: true, childList: true });
}"""


async def test_each_verdict_has_its_own_colour_shape_and_text(door):
    phone = await door.phone()
    answer = {"scanId": "one", "say": None, "overridable": False, "actions": ["scan_again"],
              "admitted": 0, "reservation": None, "firstCheckIn": None}  # fmt: skip

    await phone.page.route("**/terminal/v1/scans", lambda route: route.fulfill(json=answer))

    for result, colour in COLOURS.items():
        answer |= {"result": result, "colour": colour}
        assert await phone.type_code("7K2M") == (result, colour)
        assert await phone.page.get_attribute("#shape use", "href") == f"#shape-{colour}"
        for words in ("#verdict-word", "#verdict-sentence"):
            assert (await phone.page.inner_text(words)).strip(), (result, words)
    assert phone.complaints == []


async def test_every_part_of_a_verdict_is_visible_on_the_smallest_screen(door):
    name = "Terrasse panoramique du premier étage 12"
    await door.environment.database.write(
        lambda tx: tx.execute("UPDATE venue_table SET name = :name", {"name": name})
    )
    text = await door.pass_of(await door.guest())
    phone = await door.phone(viewport={"width": 320, "height": 568})

    assert await phone.scan(text) == "checked_in"

    assert await phone.page.inner_text("#verdict-table") == name
    outside = "one => one.scrollWidth - one.clientWidth"
    for part in ("#verdict", "#verdict-table"):
        assert await phone.page.locator(part).evaluate(outside) <= 0, part
    size = "one => parseFloat(getComputedStyle(one).fontSize)"
    word, table = [
        await phone.page.locator(f"#verdict-{part}").evaluate(size) for part in ("word", "table")
    ]
    assert word <= table
    sentence, stepper = [
        await phone.page.locator(part).bounding_box()
        for part in ("#verdict-sentence", "#fewer-here")
    ]
    assert sentence["y"] + sentence["height"] <= stepper["y"]


async def test_at_200_percent_text_size_the_reason_of_an_amber_stays_above_the_buttons(door):
    text = await door.pass_of(await door.guest(arrived=2, checked_in_at=1))
    phone = await door.phone(viewport={"width": 390, "height": 844})
    await phone.page.evaluate("document.documentElement.style.fontSize = '200%'")

    assert await phone.scan(text) == "already_checked_in"

    reason, buttons = [
        await phone.page.locator(part).bounding_box()
        for part in ("#verdict-sentence", ".verdict-actions")
    ]
    assert reason["y"] + reason["height"] <= buttons["y"]


async def test_the_shape_does_not_overlap_the_round_button_on_a_phone_held_sideways(door):
    text = await door.pass_of(await door.guest(arrived=2, checked_in_at=1))
    phone = await door.phone(viewport={"width": 844, "height": 390})

    assert await phone.scan(text) == "already_checked_in"

    shape, button = [
        await phone.page.locator(part).bounding_box() for part in ("#shape", "#verdict .past")
    ]
    assert shape["y"] + shape["height"] <= button["y"]


async def watched(door, video=None, **options):
    """Make the phone record its verdicts and their times."""
    phone = await door.phone(video=video, **options)
    await phone.page.evaluate(WATCH)
    if video:
        await phone.page.click("#start")
    return phone


async def shown(phone):
    """Return the results so far, and the milliseconds between them."""
    seen = await phone.page.evaluate("shown")
    gaps = [after["at"] - one["at"] for one, after in pairwise(seen)]
    return [one["result"] for one in seen], gaps


async def have_shown(phone, count):
    await until(lambda: phone.page.evaluate("count => shown.length >= count", count))


async def scans(door):
    return (await door.rows("SELECT count(*) FROM scan_log"))[0][0]


async def test_an_amber_verdict_stays_two_seconds_and_announces_that_the_next_scan_waits(
    door, tmp_path
):
    unpaid, welcome = await door.guest(status="pending"), await door.guest(table="T2")
    one, other = [held_up((await door.pass_of(guest), 0)) for guest in (unpaid, welcome)]
    phone = await watched(
        door,
        film_of_pictures(tmp_path / "fast.mjpeg", (None, 9), (one, 30), (other, 60), (None, 900)),
    )

    await have_shown(phone, 2)

    results, gaps = await shown(phone)
    assert results[:2] == ["payment_due", "checked_in"]
    assert gaps[0] > 1950
    assert "1" in await phone.page.evaluate("window.waited")
    assert await phone.page.is_hidden("#waiting")
    assert (await door.now_of(welcome)).arrived == 2


async def test_a_foreign_code_does_not_replace_a_new_verdict(door, tmp_path):
    welcome = held_up((await door.pass_of(await door.guest()), 0))
    menu = held_up((MENU, 0))
    phone = await watched(
        door, film_of_pictures(tmp_path / "menu.mjpeg", (welcome, 30), (menu, 60), (None, 900))
    )

    await have_shown(phone, 1)
    await phone.page.wait_for_timeout(3500)

    # On a slow machine the film is slow too, so the menu is still held up after the verdict.
    results, gaps = await shown(phone)
    assert results[0] == "checked_in"
    assert all(gap > 1950 for gap in gaps)


async def test_an_old_green_verdict_becomes_a_strip_from_which_it_can_be_undone(door):
    guest = await door.guest(guests=4)
    phone = await door.phone()
    await phone.scan(await door.pass_of(guest))

    await phone.hurry("autoClosed")
    await phone.page.wait_for_selector("#strip:not([hidden])")

    assert await phone.page.is_hidden("#verdict")
    assert "4 / 4" in await phone.page.inner_text("#strip")
    await phone.page.click("#strip")
    assert await phone.result() == "checked_in"
    await phone.undo()
    assert (await door.now_of(guest)).arrived == 0
    await phone.page.click("#next")
    assert await phone.page.is_hidden("#strip")


async def test_amber_and_red_verdicts_stay_until_somebody_has_seen_them(door):
    phone = await door.phone()
    await phone.scan(await door.pass_of(await door.guest(status="cancelled")))

    await phone.page.wait_for_timeout(5000)

    assert await phone.page.is_visible("#verdict")


async def test_a_partly_typed_reason_is_not_lost_when_another_guest_is_scanned(door, tmp_path):
    unpaid, filmed, scanned = [
        await door.guest(table=table, status=status)
        for table, status in (("T1", "pending"), ("T2", "confirmed"), ("T3", "confirmed"))
    ]
    first, second, third = [await door.pass_of(guest) for guest in (unpaid, filmed, scanned)]
    phone = await door.phone(video=film(tmp_path / "next.mjpeg", [second], blank=0))
    await phone.scan(first)
    await phone.page.click("#override")
    await phone.page.fill("#reason", "Amie du patron")
    await phone.page.evaluate(WATCH)
    await phone.page.evaluate("document.getElementById('start').click()")
    await phone.wedge(third)
    await phone.page.wait_for_selector("#waiting:not([hidden])")

    await phone.page.wait_for_timeout(3000)
    assert await phone.page.input_value("#reason") == "Amie du patron"
    assert await scans(door) == 1
    await phone.page.click("#reason-form button")
    await have_shown(phone, 3)

    results, gaps = await shown(phone)
    assert results == ["checked_in"] * 3
    assert gaps[0] > 1950  # the overridden verdict stays on screen first
    reasons = await door.rows(
        "SELECT reason, reservation_id FROM scan_log WHERE reason IS NOT NULL"
    )
    assert reasons == [("Amie du patron", unpaid.id)]
