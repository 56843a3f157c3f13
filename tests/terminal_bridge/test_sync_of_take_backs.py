"""Whom a terminal let in and took back while the box was away: not counted, and written down."""

import pytest

from tests.terminal_bridge.apart import a_scan, sync

WRITTEN = "SELECT result, admitted, reason FROM scan"


async def test_the_log_has_the_reason_and_nobody_is_counted(door):
    guest = await door.guest()
    scan = a_scan(code=await door.pass_of(guest), shown="undone", reason="Repartis")

    (result,) = await sync(door, scan)

    assert (result["result"], result["colour"], result["admitted"]) == ("undone", "grey", 0)
    assert (await door.now_of(guest)).arrived == 0
    assert (await door.now_of(guest)).checked_in_at is None
    assert await door.rows(WRITTEN) == [("undone", 0, "Repartis")]
    assert await door.rows("SELECT count(*) FROM event") == [(0,)]


async def test_it_makes_no_conflict_with_the_door_that_let_them_in(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    await (await door.other()).scan(text)

    (result,) = await sync(door, a_scan(code=text, shown="undone", reason="Mauvais client"))

    assert (result["result"], result["conflict"]) == ("undone", None)
    assert (await door.now_of(guest)).arrived == 2


async def test_what_was_let_in_with_a_reason_may_be_taken_back_with_another(door):
    guest = await door.guest(status="pending")
    scan = a_scan(
        code=await door.pass_of(guest),
        shown="undone",
        reason="Mauvais client",
        override={"reason": "Connu"},
    )

    (result,) = await sync(door, scan)

    assert (result["result"], result["conflict"]) == ("undone", None)
    assert await door.rows(WRITTEN) == [("undone", 0, "Mauvais client")]
    assert (await door.now_of(guest)).arrived == 0


async def test_a_take_back_may_have_no_reason(door):
    guest = await door.guest()

    await sync(door, a_scan(code=await door.pass_of(guest), shown="undone"))

    assert await door.rows(WRITTEN) == [("undone", 0, None)]


@pytest.mark.parametrize("reason", [7, "x" * 201])
async def test_a_reason_that_is_none_is_named(door, reason):
    guest = await door.guest()
    scan = a_scan(code=await door.pass_of(guest), shown="undone", reason=reason)

    status, refusal = await door.call("POST", "/sync", {"scans": [scan]})

    assert (status, refusal["code"], refusal["field"]) == (
        400,
        "VALIDATION_ERROR",
        "scans[0].reason",
    )
