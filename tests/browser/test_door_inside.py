"""People inside, late parties and walk-ins in the door app."""

import pytest

from tests.browser.accessibility import violations
from tests.builders import table_id
from tests.conftest import set_rules
from tests.waiting import until

CODE = "SVC-7K2M"
INSIDE = "people => document.getElementById('inside').textContent.includes(people)"
IN_THE_LOG = "SELECT sum(admitted + moved) FROM scan_log"
LATE = '{"lateArrivalMinutes": 15}'


async def open_guest(phone):
    if not await phone.page.is_visible("#list-sheet"):
        await phone.page.click("#open-list")
    await phone.page.locator("#guests button").first.click()


async def test_offline_exits_appear_on_all_phones_after_the_box_returns(door):
    await set_rules(door.environment, capacity=20)
    await door.guest(guests=6, access_code=CODE)
    near, away = await door.phone("Porte 1"), await door.phone("Porte 2")
    assert await near.type_code(CODE) == ("checked_in", "green")
    for phone in (near, away):
        await phone.until(INSIDE, "6 / 20")
    await away.lose_box()

    await away.page.click("#exit-mode")
    assert await violations(away.page) == []
    assert await away.type_code(CODE) == ("went_out", "green")
    await away.page.select_option("#verdict-stepper select", "4")  # two of them stay
    await away.until(INSIDE, "2 / 20")
    await away.page.reload()
    await away.until(INSIDE, "2 / 20")
    await away.find_box()

    for phone in (near, away):
        await phone.until(INSIDE, "2 / 20")
    assert await door.rows(IN_THE_LOG) == [(2,)]
    assert await near.type_code(CODE) == ("came_back", "green")
    await away.until(INSIDE, "6 / 20")
    assert near.complaints == away.complaints == []


async def test_a_full_venue_is_amber_on_the_counter_and_on_a_green_verdict(door):
    await set_rules(door.environment, capacity=2)
    await door.guest(access_code=CODE)
    phone = await door.phone()

    assert await phone.type_code(CODE) == ("checked_in", "green")

    assert await phone.page.get_attribute("#verdict", "data-full") == "full"
    await phone.page.wait_for_selector("#inside[data-full=full]")


async def test_part_of_a_party_can_be_counted_out_and_in_again_on_its_sheet(door):
    guest = await door.guest(guests=3, access_code=CODE)
    phone = await door.phone()
    await phone.type_code(CODE)
    await phone.page.click("#next")

    await open_guest(phone)
    assert await violations(phone.page) == []
    await phone.page.click("#guest-out-go")
    assert await phone.result() == "went_out"
    assert (await door.now_of(guest)).people_out == 1
    await phone.page.click("#next")
    await open_guest(phone)
    await phone.page.click("#guest-go")

    assert await phone.result() == "came_back"
    assert (await door.now_of(guest)).inside == 3


async def test_a_late_party_becomes_a_no_show_with_one_tap_and_can_be_restored_with_another(door):
    await set_rules(door.environment, policies=LATE)
    guest = await door.guest(slot="19:30")
    door.clock.advance(50 * 60)
    phone = await door.phone()
    await phone.page.click("#open-list")
    await phone.page.click("[data-filter=late]")

    await open_guest(phone)
    assert await violations(phone.page) == []
    await phone.page.click("#guest-no-show")
    await phone.page.click("#guest-take-back")

    await phone.page.wait_for_selector("#guest-no-show")
    assert (await door.now_of(guest)).status == "confirmed"
    assert await phone.page.get_attribute("#guests [data-guest]", "data-guest") == guest.id


async def test_a_walk_in_gets_the_best_free_table_or_is_only_counted_while_offline(door):
    await door.guest(table="T1", slot="19:30")
    phone = await door.phone()
    for _ in range(2):
        await phone.page.click("#open-list")
        await phone.page.click("#open-walk-in")
        await phone.page.wait_for_selector("#walk-in-tables [aria-pressed=true]")
        assert await violations(phone.page) == []
        await phone.page.click("#walk-in-go")
        await phone.result()
        await phone.page.click("#next")
        await phone.lose_box()
    seated = "SELECT table_id, guests, arrived FROM reservation WHERE walk_in"
    assert await door.rows(seated) == [(table_id("T2"), 2, 2)]
    await phone.until(INSIDE, "4")

    await phone.find_box()

    async def is_merged():
        return await door.rows(IN_THE_LOG) == [(4,)]

    await until(is_merged)
    await phone.until(INSIDE, "4")


async def test_a_repeated_refusal_is_visible(door):
    await door.guest(access_code=CODE)
    phone = await door.phone()
    await phone.type_code(CODE)

    for times in ("", "×2", "×3"):
        assert await phone.type_code(CODE) == ("already_checked_in", "amber")
        assert await phone.page.text_content("#verdict-times") == times


@pytest.mark.parametrize(("button", "arrived"), [("correct", 3), ("ok", 6)])
async def test_acknowledging_a_conflict_can_correct_the_number_of_arrivals(door, button, arrived):
    guest = await door.guest(guests=3, access_code=CODE)
    phones = [await door.phone("Porte 1"), await door.phone("Porte 2")]
    await door.stop()
    for phone in phones:
        assert await phone.type_code(CODE) == ("checked_in", "green")
        await phone.page.click("#next")
    await door.start()

    await phones[0].page.click(f"#conflict-{button}:enabled", timeout=60_000)

    async def is_done():
        found = await door.rows("SELECT acknowledged_at IS NOT NULL FROM door_conflict")
        return found == [(1,)] and await door.are_in(guest, arrived)

    await until(is_done)
