"""Whom staff let in with a reason while the box was away: counted as it would have been online."""

import pytest

from tests.terminal_bridge.apart import a_scan, sync

REASON = {"reason": "un de plus, vu avec l'hôte"}


@pytest.mark.parametrize("shown", ["already_checked_in", "party_added"])
async def test_one_more_of_a_full_party_is_one_more_and_no_conflict(door, shown):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    await door.scan(text)

    (result,) = await sync(door, a_scan(code=text, shown=shown, override=REASON))

    assert (result["admitted"], result["overrode"]) == (1, "already_checked_in")
    assert result["conflict"] is None
    assert (await door.now_of(guest)).arrived == 5


async def test_three_of_two_booked_let_in_with_a_reason_are_no_conflict(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)

    (result,) = await sync(door, a_scan(code=text, arrivals=3, override=REASON))

    assert (result["admitted"], result["overrode"]) == (3, "party_full")
    assert result["conflict"] is None


async def test_a_reason_for_something_else_hides_no_second_door(door):
    there = await door.other()
    guest = await door.guest(guests=2, status="pending")
    text = await door.pass_of(guest)
    await sync(door, a_scan(code=text, shown="payment_due", override=REASON))

    (result,) = await sync(there, a_scan(code=text, shown="payment_due", override=REASON))

    assert result["admitted"] == 2
    assert result["conflict"]["kind"] == "admitted_twice"
    assert result["conflict"]["other"]["terminal"] == "Porte 1"


async def test_without_a_reason_a_party_that_is_in_already_was_let_in_twice(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    await door.scan(text)

    (result,) = await sync(door, a_scan(code=text))

    assert (result["admitted"], result["conflict"]["kind"]) == (2, "admitted_twice")
