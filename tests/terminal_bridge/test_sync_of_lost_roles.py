"""Whom staff let in with a reason on a terminal whose role for it was taken away meanwhile."""

import pytest

from appliance.actions.edit_terminal import edit_terminal, terminal_mark
from tests.terminal_bridge.apart import a_scan, sync

REASON = {"reason": "connu de la maison"}


async def lower(door, role):
    """The manager lets that terminal do less from now on."""
    seen, database = terminal_mark("Porte 1", "override"), door.environment.database
    await database.write(edit_terminal, door.terminal_id, seen, "Porte 1", role)


async def open_conflicts(door):
    _, evening = await door.call("GET", "/evening")
    return evening["conflicts"]


@pytest.mark.proves("I6")
@pytest.mark.parametrize("role", ["search", "scan"])
async def test_they_are_in_and_a_conflict_says_what_the_terminal_lacked(door, role):
    desk = await door.other("Bureau")
    guest = await door.guest(status="pending")
    scan = a_scan(code=await door.pass_of(guest), shown="payment_due", override=REASON)
    await lower(door, role)

    (result,) = await sync(door, scan)

    assert (result["admitted"], result["overrode"]) == (2, "payment_due")
    assert (result["conflict"]["kind"], result["conflict"]["roleMissing"]) == (
        "admitted_anyway", "override",
    )  # fmt: skip
    assert [one["id"] for one in await open_conflicts(desk)] == [result["conflict"]["id"]]
    assert (await door.now_of(guest)).arrived == 2
    assert await door.rows("SELECT reason FROM scan") == [("connu de la maison",)]


async def test_sent_again_it_is_answered_the_same_and_counted_once(door):
    guest = await door.guest(status="pending")
    scan = a_scan(code=await door.pass_of(guest), shown="payment_due", override=REASON)
    await lower(door, "scan")
    first = await sync(door, scan)

    assert await sync(door, scan) == first
    assert (await door.now_of(guest)).arrived == 2
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(1,)]


async def test_one_more_of_a_full_party_is_counted_and_told_too(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    await door.scan(text)
    await lower(door, "search")

    (result,) = await sync(
        door, a_scan(code=text, shown="already_checked_in", arrivals=1, override=REASON)
    )

    conflict = result["conflict"]
    assert (result["admitted"], conflict["kind"]) == (1, "admitted_anyway")
    assert (conflict["despite"], conflict["roleMissing"]) == ("already_checked_in", "override")


async def test_whom_the_box_would_have_let_in_needs_no_reason_and_is_no_conflict(door):
    guest = await door.guest()
    await lower(door, "scan")

    (result,) = await sync(
        door, a_scan(code=await door.pass_of(guest), shown="old_list", override=REASON)
    )

    assert (result["result"], result["admitted"], result["conflict"]) == ("checked_in", 2, None)


async def test_who_was_let_in_twice_is_let_in_twice_whatever_the_role(door):
    there = await door.other()
    guest = await door.guest(guests=2, status="pending")
    text = await door.pass_of(guest)
    await sync(there, a_scan(code=text, shown="payment_due", override=REASON))
    await lower(door, "scan")

    (result,) = await sync(door, a_scan(code=text, shown="payment_due", override=REASON))

    conflict = result["conflict"]
    assert (conflict["kind"], conflict["roleMissing"]) == ("admitted_twice", None)


async def test_of_many_scans_one_such_holds_up_none_of_the_others(door):
    guests = [await door.guest(table=table) for table in ("T1", "T2")]
    owing = await door.guest(table="T3", status="pending")
    scans = [a_scan(code=await door.pass_of(guest)) for guest in guests]
    scans.insert(1, a_scan(code=await door.pass_of(owing), shown="payment_due", override=REASON))
    await lower(door, "scan")

    results = await sync(door, *scans)

    assert [result["admitted"] for result in results] == [2, 2, 2]
    assert [bool(result["conflict"]) for result in results] == [False, True, False]


async def test_a_forgotten_guest_leaves_no_reason_in_the_conflict(door):
    guest = await door.guest(status="pending")
    scan = a_scan(code=await door.pass_of(guest), shown="payment_due", override=REASON)
    await lower(door, "scan")
    await sync(door, scan)
    await door.environment.database.write(lambda tx: tx.execute("UPDATE scan SET reason = NULL"))

    (conflict,) = await open_conflicts(await door.other())

    assert (conflict["kind"], conflict["roleMissing"]) == ("admitted_anyway", None)


@pytest.mark.proves("S10")
@pytest.mark.parametrize("role", ["scan", "search"])
@pytest.mark.parametrize(
    ("changes", "despite"),
    [({"date": "2026-11-22"}, "not_yet"), ({"date": "2026-11-20"}, "too_late"),
     ({"slot": "23:30"}, "not_yet")],
)  # fmt: skip
async def test_who_comes_another_evening_is_a_conflict_where_the_role_lets_nobody_in(
    door, role, changes, despite
):
    there = await door.other(role=role)
    guest = await door.guest(**changes)

    (result,) = await sync(there, a_scan(code=await door.pass_of(guest), shown="checked_in"))

    conflict = result["conflict"]
    assert (conflict["kind"], conflict["despite"]) == ("admitted_anyway", despite)
    assert conflict["reservationId"] == guest.id
    assert [one["id"] for one in await open_conflicts(door)] == [conflict["id"]]


async def test_where_staff_may_let_in_anybody_another_evening_is_no_conflict(door):
    guest = await door.guest(date="2026-11-22")

    (result,) = await sync(door, a_scan(code=await door.pass_of(guest), shown="checked_in"))

    assert (result["overrode"], result["conflict"]) == ("not_yet", None)


@pytest.mark.parametrize("role", ["scan", "search"])
async def test_such_a_role_lets_nobody_in_against_the_box_when_it_is_decided_now(door, role):
    there = await door.other(role=role)
    guest = await door.guest(date="2026-11-22")
    scan = a_scan(code=await door.pass_of(guest), shown=None)

    (result,) = await sync(there, scan)
    status, _ = await there.call(
        "POST", "/sync", {"scans": [{**scan, "scanId": "again", "override": REASON}]}
    )

    assert (result["result"], result["admitted"]) == ("not_yet", 0)
    assert status == 403
    assert (await door.now_of(guest)).arrived == 0
