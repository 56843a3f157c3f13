"""Undoing a check-in."""

import json

import pytest

from tests.app.terminal_bridge.apart import a_scan, sync

TYPES = """SELECT e.type, n.url FROM delivery d JOIN event e ON e.seq = d.event_seq
    JOIN endpoint n ON n.id = d.endpoint_id ORDER BY d.seq"""


async def undo(door, scan_id="one", reason=None):
    body = None if reason is None else {"reason": reason}
    return await door.call("POST", f"/scans/{scan_id}/undo", body)


async def a_check_in(door, **changes):
    guest = await door.guest(**changes)
    await door.scan(await door.pass_of(guest), scanId="one")
    return guest


async def test_within_ten_seconds_the_same_terminal_can_undo_without_a_reason(door):
    guest = await a_check_in(door)
    door.clock.advance(10)

    status, verdict = await undo(door)

    assert (status, verdict["result"], verdict["admitted"]) == (200, "undone", -2)
    assert verdict["reservation"]["arrived"] == 0
    assert (await door.now_of(guest)).checked_in_at is None


async def test_after_ten_seconds_an_undo_needs_a_reason_that_is_logged(door):
    guest = await a_check_in(door)
    door.clock.advance(10.001)
    status, refusal = await undo(door)
    assert (status, refusal["code"], refusal["field"]) == (400, "VALIDATION_ERROR", "reason")
    assert (await door.now_of(guest)).arrived == 2

    status, _ = await undo(door, reason="mauvaise personne")

    assert status == 200
    assert (await door.now_of(guest)).checked_in_at is None
    log = await door.rows("SELECT kind, admitted, reason, undoes FROM scan_log ORDER BY seq")
    assert log == [("pass", 2, None, None), ("undo", -2, "mauvaise personne", 1)]


async def test_another_terminal_always_needs_a_reason_to_undo(door):
    guest = await a_check_in(door)
    there = await door.other()

    assert (await undo(there))[0] == 400
    assert (await undo(there, reason="vu au bar"))[0] == 200
    assert (await door.now_of(guest)).arrived == 0


async def test_a_second_undo_and_a_repeat_of_the_undone_scan_get_the_first_answer(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    scanned = await door.scan(text, scanId="one")
    first = await undo(door)
    door.clock.advance(600)

    assert await undo(door) == first
    assert await door.scan(text, scanId="one") == scanned
    assert (await undo(door, "undo:1"))[0] == 400
    assert await door.rows("SELECT what, detail FROM history") == [
        ("checked_in", '{"people": 2}'), ("undone", '{"people": 2}'),
    ]  # fmt: skip
    assert (await door.now_of(guest)).arrived == 0


async def test_the_arrival_time_is_kept_while_any_guest_of_the_party_is_checked_in(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    await door.scan(text, scanId="one", arrivals=1)
    arrived_at = door.clock.now()
    door.clock.advance(60)
    await door.scan(text, scanId="two", arrivals=2)

    await undo(door, "one", "mauvaise personne")

    assert (await door.now_of(guest)).arrived == 2
    assert (await door.now_of(guest)).checked_in_at == arrived_at

    await undo(door, "two")

    assert (await door.now_of(guest)).arrived == 0
    assert (await door.now_of(guest)).checked_in_at is None


async def test_check_ins_after_an_undo_are_announced_to_all_but_the_undo_only_to_subscribers(door):
    await an_endpoint(door, "https://six.example", "reservation.checked_in")
    await an_endpoint(
        door, "https://seven.example", "reservation.checked_in", "reservation.checkin_reverted"
    )
    guest = await a_check_in(door)
    await undo(door)
    door.clock.advance(60)
    verdict = await door.scan(await door.pass_of(guest))

    assert (verdict["result"], verdict["firstCheckIn"]["at"]) == (
        "checked_in", "2026-11-21T19:01:00.000Z",
    )  # fmt: skip
    assert await door.rows(TYPES) == [
        ("reservation.checked_in", "https://six.example"),
        ("reservation.checked_in", "https://seven.example"),
        ("reservation.checkin_reverted", "https://seven.example"),
        ("reservation.checked_in", "https://six.example"),
        ("reservation.checked_in", "https://seven.example"),
    ]


@pytest.mark.parametrize(
    ("scan_id", "status", "code"),
    [("one", 409, "WRONG_STATE"), ("two", 404, "NOT_FOUND"), ("ONE", 404, "NOT_FOUND")],
)
async def test_a_scan_that_is_unknown_or_admitted_nobody_cannot_be_undone(
    door, scan_id, status, code
):
    await door.scan("unknown thing", scanId="one")

    answered, refusal = await undo(door, scan_id)

    assert (answered, refusal["code"]) == (status, code)


async def an_endpoint(door, url: str, *events: str) -> None:
    def add(tx):
        values = {"url": url, "events": json.dumps(events), "active": 1, "secret": b""}
        tx.insert("endpoint", {"id": tx.new_id(), "created_at": tx.now, **values})

    await door.environment.database.write(add)


@pytest.fixture
async def guest(door):
    """Two guests who owe a payment. The box refused scan `late`, but the phone admitted them."""
    guest = await door.guest(status="pending")
    text = await door.pass_of(guest)
    assert (await door.scan(text, scanId="late"))["result"] == "payment_due"
    await sync(door, a_scan(scanId="late", code=text))
    assert (await door.now_of(guest)).arrived == 2
    return guest


async def test_a_terminal_cannot_undo_an_equally_named_scan_of_another_terminal(door, guest):
    there = await door.other()
    other = await door.guest(table="T2", status="pending")
    await there.scan(await door.pass_of(other), scanId="alone")
    await sync(door, a_scan(scanId="alone~apart", code=await door.pass_of(other)))

    status, refusal = await there.call("POST", "/scans/alone/undo", {"reason": "x"})

    assert (status, refusal["code"]) == (409, "WRONG_STATE")
    assert (await door.now_of(other)).arrived == 2


async def test_an_undone_admission_is_not_shown_as_the_first_check_in(door):
    there = await door.other()
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    await door.scan(text, scanId="one", arrivals=2)
    door.clock.advance(1800)
    await there.scan(text)
    await door.call("POST", "/scans/one/undo", {"reason": "mauvaise table"})
    await there.scan(text)

    verdict = await door.scan(text)

    assert verdict["result"] == "already_checked_in"
    assert verdict["firstCheckIn"] == {
        "at": "2026-11-21T19:30:00.000Z", "terminal": "Porte 2", "by": None,
    }  # fmt: skip


async def undo_by_hand(door, guest, **body):
    return await door.call("POST", f"/check-ins/{guest.id}/undo", body)


async def test_a_partys_latest_check_in_can_be_undone_from_the_list_with_a_reason(door):
    guest = await door.guest(guests=4)
    assert (await undo_by_hand(door, guest, reason="Erreur"))[1]["code"] == "WRONG_STATE"
    for scan_id, arrivals in (("one", 3), ("two", 1)):
        await door.scan(await door.pass_of(guest), scanId=scan_id, arrivals=arrivals)
    door.clock.advance(3600)
    status, refusal = await undo_by_hand(door, guest, reason=" ")
    assert (status, refusal["field"]) == (400, "reason")

    status, verdict = await undo_by_hand(door, guest, reason="Repartis", arrived=4)
    again, refusal = await undo_by_hand(door, guest, reason="Repartis", arrived=4)

    assert (status, verdict["result"], verdict["admitted"]) == (200, "undone", -1)
    assert verdict["reservation"]["arrived"] == (await door.now_of(guest)).arrived == 3
    assert (again, refusal["code"]) == (409, "WRONG_STATE")
    told = "SELECT kind, reason, admitted FROM scan_log ORDER BY seq DESC LIMIT 1"
    assert await door.rows(told) == [("undo", "Repartis", -1)]
