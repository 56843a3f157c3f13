"""Taking a check-in back."""

import json

import pytest

TYPES = """SELECT e.type, n.url FROM delivery d JOIN event e ON e.seq = d.event_seq
    JOIN endpoint n ON n.id = d.endpoint_id ORDER BY d.seq"""


async def undo(door, scan_id="one", reason=None):
    body = None if reason is None else {"reason": reason}
    return await door.call("POST", f"/scans/{scan_id}/undo", body)


async def a_check_in(door, **changes):
    guest = await door.guest(**changes)
    await door.scan(await door.pass_of(guest), scanId="one")
    return guest


async def test_within_ten_seconds_the_same_terminal_undoes_without_a_word(door):
    guest = await a_check_in(door)
    door.clock.advance(10)

    status, verdict = await undo(door)

    assert (status, verdict["result"], verdict["admitted"]) == (200, "undone", -2)
    assert verdict["reservation"]["arrived"] == 0
    assert (await door.now_of(guest)).checked_in_at is None


async def test_later_a_reason_is_needed(door):
    guest = await a_check_in(door)
    door.clock.advance(10.001)

    status, refusal = await undo(door)

    assert (status, refusal["code"], refusal["field"]) == (400, "VALIDATION_ERROR", "reason")
    assert (await door.now_of(guest)).arrived == 2


async def test_later_a_reason_is_enough_and_is_logged(door):
    guest = await a_check_in(door)
    door.clock.advance(3600)

    status, _ = await undo(door, reason="mauvaise personne")

    assert status == 200
    assert (await door.now_of(guest)).checked_in_at is None
    log = await door.rows("SELECT kind, admitted, reason, undoes FROM scan ORDER BY seq")
    assert log == [("pass", 2, None, None), ("undo", -2, "mauvaise personne", 1)]


async def test_another_terminal_needs_a_reason_from_the_first_second(door):
    guest = await a_check_in(door)
    there = await door.other()

    assert (await undo(there))[0] == 400
    assert (await undo(there, reason="vu au bar"))[0] == 200
    assert (await door.now_of(guest)).arrived == 0


async def test_a_second_undo_gets_the_answer_of_the_first_and_changes_nothing(door):
    await a_check_in(door)
    first = await undo(door)
    door.clock.advance(600)

    assert await undo(door) == first
    assert await door.rows("SELECT count(*) FROM scan") == [(2,)]


async def test_the_undone_scan_is_still_answered_as_it_was(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    first = await door.scan(text, scanId="one")
    await undo(door)

    assert await door.scan(text, scanId="one") == first
    assert (await door.now_of(guest)).arrived == 0


async def test_the_arrival_stands_while_anybody_of_the_party_is_in(door):
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


async def test_who_is_undone_may_come_in_again(door):
    guest = await a_check_in(door)
    await undo(door)
    door.clock.advance(60)

    verdict = await door.scan(await door.pass_of(guest))

    assert verdict["result"] == "checked_in"
    assert verdict["firstCheckIn"]["at"] == "2026-11-21T19:01:00.000Z"
    assert (await door.now_of(guest)).checked_in_at == door.clock.now()


async def test_only_endpoints_that_opted_in_hear_of_a_reversal_and_all_of_the_second_arrival(door):
    await an_endpoint(door, "https://six.example", "reservation.checked_in")
    await an_endpoint(
        door, "https://seven.example", "reservation.checked_in", "reservation.checkin_reverted"
    )
    guest = await a_check_in(door)
    await undo(door)
    await door.scan(await door.pass_of(guest))

    assert await door.rows(TYPES) == [
        ("reservation.checked_in", "https://six.example"),
        ("reservation.checked_in", "https://seven.example"),
        ("reservation.checkin_reverted", "https://seven.example"),
        ("reservation.checked_in", "https://six.example"),
        ("reservation.checked_in", "https://seven.example"),
    ]


async def test_each_time_the_arrival_is_set_it_is_announced_and_never_for_the_rest_of_a_party(door):
    guest = await door.guest(guests=3)
    await door.scan(await door.pass_of(guest), scanId="one", arrivals=1)
    await door.scan(await door.pass_of(guest), scanId="two", arrivals=1)
    await undo(door, "one")
    await undo(door, "two")
    await door.scan(await door.pass_of(guest), scanId="three")

    events = await door.rows("SELECT type FROM event WHERE type = 'reservation.checked_in'")
    assert len(events) == 2


async def test_a_scan_that_let_nobody_in_cannot_be_undone(door):
    await door.scan("unknown thing", scanId="one")

    status, refusal = await undo(door)

    assert (status, refusal["code"]) == (409, "WRONG_STATE")


async def test_an_undo_cannot_be_undone(door):
    await a_check_in(door)
    await undo(door)

    status, _ = await undo(door, "undo:1")

    assert status == 400


@pytest.mark.parametrize("scan_id", ["two", "ONE"])
async def test_a_scan_that_never_was_is_not_found(door, scan_id):
    await a_check_in(door)

    status, refusal = await undo(door, scan_id)

    assert (status, refusal["code"]) == (404, "NOT_FOUND")


async def test_undoing_is_in_the_history_of_the_reservation(door):
    await a_check_in(door)
    await undo(door)

    assert await door.rows("SELECT what, detail FROM history") == [
        ("checked_in", '{"people": 2}'), ("undone", '{"people": 2}'),
    ]  # fmt: skip


async def an_endpoint(door, url: str, *events: str) -> None:
    def add(tx):
        values = {"url": url, "events": json.dumps(events), "active": 1, "secret": b""}
        tx.insert("endpoint", {"id": tx.new_id(), "created_at": tx.now, **values})

    await door.environment.database.write(add)
