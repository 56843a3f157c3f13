"""Whom a terminal let in by a name or a code: it tells the guest, or the box tells somebody."""

import pytest

from tests.terminal_bridge.apart import a_scan, sync
from tests.terminal_bridge.listening import listening


@pytest.mark.parametrize("role", ["scan", "search", "override"])
async def test_whom_a_terminal_took_somebody_for_is_who_came_in_whatever_its_role(door, role):
    there = await door.other(role=role)
    guest = await door.guest(customer_name="Benoît Martin", guests=4)
    await door.guest(customer_name="Sara Ben Ali", table="T2")

    (result,) = await sync(there, a_scan(reservationId=guest.id, code="ben", arrivals=3))

    assert (result["result"], result["admitted"]) == ("checked_in", 3)
    assert result["conflict"] is None
    assert (await door.now_of(guest)).arrived == 3


async def test_a_refusal_of_a_known_guest_is_logged_under_their_name(door):
    there = await door.other(role="scan")
    guest = await door.guest(status="pending")

    (result,) = await sync(there, a_scan(reservationId=guest.id, shown="payment_due"))

    assert (result["result"], result["admitted"]) == ("payment_due", 0)
    assert await door.rows("SELECT reservation_id, kind FROM scan") == [(guest.id, "list")]


@pytest.mark.parametrize(
    ("code", "despite"),
    [("ben", "ambiguous"), ("Zoubida", "unknown_code"), ("SVC-7K2M", "unknown_code")],
)
async def test_whom_a_terminal_let_in_and_the_box_cannot_tell_is_a_conflict(door, code, despite):
    await door.guest(customer_name="Benoît Martin", guests=4)
    await door.guest(customer_name="Sara Ben Ali", table="T2")
    async with listening(door) as here:
        (result,) = await sync(door, a_scan(code=code))
        heard = await here.until("conflict")

    conflict = result["conflict"]
    assert (conflict["kind"], conflict["despite"]) == ("admitted_anyway", despite)
    assert (conflict["reservationId"], conflict["arrived"], conflict["guests"]) == (None, 0, 0)
    assert conflict["admissions"] == [
        {"terminalId": door.terminal_id, "terminal": "Porte 1", "at": "2026-11-21T18:50:00.000Z"}
    ]
    assert heard.data["conflict"]["id"] == conflict["id"]
    assert (await door.call("GET", "/evening"))[1]["conflicts"] == [conflict]


async def test_who_stayed_outside_and_is_unknown_is_no_conflict(door):
    (result,) = await sync(door, a_scan(code="Zoubida", shown="unknown_code"))

    assert result["conflict"] is None


async def test_a_conflict_about_nobody_known_is_one_however_often_it_is_sent(door):
    scan = a_scan(code="Zoubida")

    answers = [(await sync(door, scan))[0] for _ in range(3)]

    assert answers == [answers[0]] * 3
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(1,)]
    assert await door.rows("SELECT count(*) FROM scan") == [(1,)]


async def test_a_conflict_about_nobody_known_is_acknowledged_like_any_other(door):
    (result,) = await sync(door, a_scan(code="Zoubida"))

    path = f"/conflicts/{result['conflict']['id']}/acknowledge"
    status, _ = await door.call("POST", path)

    assert status == 200
    assert (await door.call("GET", "/evening"))[1]["conflicts"] == []


async def test_who_was_let_in_before_the_boxs_question_which_one_arrived_is_counted(door):
    guest = await door.guest(customer_name="Benoît Martin", guests=4)
    await door.guest(customer_name="Sara Ben Ali", table="T2")
    late = await door.scan("ben", scanId="late")
    assert late["result"] == "ambiguous"

    (result,) = await sync(door, a_scan(scanId="late", reservationId=guest.id))

    assert (result["result"], result["conflict"]) == ("checked_in", None)
    assert (await door.now_of(guest)).arrived == 4
