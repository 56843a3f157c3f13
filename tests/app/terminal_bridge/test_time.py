"""Midnight, the end of the evening, early guests, and the hour that Morocco repeats."""

import pytest

from tests.conftest import set_rules


@pytest.mark.parametrize(
    ("date", "slot", "now", "result"),
    [
        ("2026-11-21", None, "2026-11-21T05:59:59Z", "not_yet"),
        ("2026-11-21", None, "2026-11-21T06:00:00Z", "checked_in"),
        ("2026-11-21", None, "2026-11-22T00:01:00Z", "checked_in"),
        ("2026-11-21", None, "2026-11-22T05:59:59Z", "checked_in"),
        ("2026-11-21", None, "2026-11-22T06:00:00Z", "too_late"),
        ("2026-09-19", None, "2026-09-19T04:59:59Z", "not_yet"),  # 05:59:59 at +01
        ("2026-09-19", None, "2026-09-19T05:00:00Z", "checked_in"),
        ("2026-09-19", None, "2026-09-20T04:59:00Z", "checked_in"),  # 05:59 at the old +01
        ("2026-09-19", None, "2026-09-20T05:59:00Z", "checked_in"),
        ("2026-09-19", None, "2026-09-20T06:00:00Z", "too_late"),
        ("2026-11-21", "21:00", "2026-11-21T18:59:59Z", "not_yet"),
        ("2026-11-21", "21:00", "2026-11-21T19:00:00Z", "checked_in"),
        ("2026-11-21", "21:00", "2026-11-22T03:00:00Z", "checked_in"),
        ("2026-11-21", "01:00", "2026-11-21T22:59:59Z", "not_yet"),  # a slot after midnight
        ("2026-11-21", "01:00", "2026-11-21T23:00:00Z", "checked_in"),
        ("2026-11-21", "06:00", "2026-11-21T06:00:00Z", "checked_in"),  # the day's first minute
    ],
)
async def test_guests_are_admitted_from_two_hours_before_their_slot_until_six_in_the_morning(
    door, date, slot, now, result
):
    guest = await door.guest(date=date, slot=slot)
    door.clock.set(now)

    assert (await door.scan(await door.pass_of(guest)))["result"] == result


async def test_a_guest_scanned_in_both_repeated_hours_is_checked_in_once(door):
    text = await door.pass_of(await door.guest(date="2026-09-19"))
    door.clock.set("2026-09-20T00:30:00Z")
    first = await door.scan(text)
    door.clock.set("2026-09-20T01:30:00Z")

    second = await door.scan(text)

    assert [first["result"], second["result"]] == ["checked_in", "already_checked_in"]
    assert second["firstCheckIn"]["at"] == "2026-09-20T00:30:00.000Z"
    assert "01:30" in second["say"]["staff"]


async def test_the_venue_can_set_how_early_guests_are_admitted(door):
    guest = await door.guest(slot="21:00")
    await set_rules(door.environment, early_minutes=0)
    door.clock.set("2026-11-21T20:59:59Z")

    early = await door.scan(await door.pass_of(guest))
    door.clock.advance(1)
    on_time = await door.scan(await door.pass_of(guest))

    assert [early["result"], on_time["result"]] == ["not_yet", "checked_in"]


async def test_a_moved_guest_is_checked_against_the_current_reservation_and_not_the_printed_pass(
    door,
):
    guest = await door.guest(date="2026-11-22")
    printed = await door.pass_of(guest)

    def move(tx):
        tx.execute("UPDATE reservation SET date = '2026-11-21'")

    await door.environment.database.write(move)

    assert (await door.scan(printed))["result"] == "checked_in"
