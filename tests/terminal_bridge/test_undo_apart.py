"""Taking back whom a terminal let in by its own list, the box's no having come too late."""

import pytest

from tests.terminal_bridge.apart import a_scan, sync


@pytest.fixture
async def guest(door):
    """Two people who owe a payment; the box refused scan `late`, the phone let them in."""
    guest = await door.guest(status="pending")
    text = await door.pass_of(guest)
    assert (await door.scan(text, scanId="late"))["result"] == "payment_due"
    await sync(door, a_scan(scanId="late", code=text))
    assert (await door.now_of(guest)).arrived == 2
    return guest


async def undo(door):
    return await door.call("POST", "/scans/late/undo", {"reason": "à la porte"})


async def test_they_are_taken_back_under_the_id_that_the_phone_knows(door, guest):
    status, verdict = await undo(door)

    assert (status, verdict["result"], verdict["admitted"]) == (200, "undone", -2)
    assert (await door.now_of(guest)).arrived == 0
    assert (await door.now_of(guest)).checked_in_at is None


async def test_a_second_time_is_answered_like_the_first(door, guest):
    first = await undo(door)

    assert await undo(door) == first
    assert await door.rows("SELECT count(*) FROM scan") == [(3,)]


async def test_what_another_terminal_counted_under_that_id_stays(door, guest):
    there = await door.other()
    other = await door.guest(table="T2", status="pending")
    await there.scan(await door.pass_of(other), scanId="alone")
    await sync(door, a_scan(scanId="alone~apart", code=await door.pass_of(other)))

    status, refusal = await there.call("POST", "/scans/alone/undo", {"reason": "x"})

    assert (status, refusal["code"]) == (409, "WRONG_STATE")
    assert (await door.now_of(other)).arrived == 2
