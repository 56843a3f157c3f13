"""Parties, overrides, repeated and simulated scans, and many doors at once."""

import asyncio
from collections import Counter

import pytest

from appliance.reservations.rows import update_reservation

EVENTS = "SELECT type FROM event ORDER BY seq"


async def test_a_party_is_counted_as_it_arrives_and_announced_once(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)

    first = await door.scan(text, arrivals=1)
    door.clock.advance(60)
    rest = await door.scan(text)

    assert [first["result"], rest["result"]] == ["checked_in", "party_added"]
    assert [first["reservation"]["arrived"], rest["reservation"]["arrived"]] == [1, 4]
    assert [first["admitted"], rest["admitted"]] == [1, 3]
    assert await door.rows(EVENTS) == [("reservation.checked_in",)]
    assert (await door.now_of(guest)).checked_in_at == door.clock.now() - 60_000
    actor = f"terminal:{door.terminal_id}"
    assert await door.rows("SELECT what, actor, detail FROM history") == [
        ("checked_in", actor, '{"people": 1}'), ("party_added", actor, '{"people": 3}'),
    ]  # fmt: skip


async def test_a_check_in_never_changes_the_status(door):
    guest = await door.guest(status="pending")

    verdict = await door.scan(await door.pass_of(guest), override={"reason": "payé en espèces"})

    assert verdict["result"] == "checked_in"
    assert (await door.now_of(guest)).status == verdict["reservation"]["status"] == "pending"


@pytest.mark.parametrize(
    ("changes", "refused"),
    [({"status": "cancelled"}, "cancelled"), ({"status": "declined"}, "declined"),
     ({"status": "requested"}, "not_confirmed"), ({"status": "partial"}, "payment_due"),
     ({"status": "pending"}, "payment_due"),
     ({"date": "2026-11-22"}, "not_yet"), ({"date": "2026-11-20"}, "too_late"),
     ({"guests": 1}, "party_full")],
)  # fmt: skip
async def test_staff_can_admit_a_guest_with_a_reason_and_it_counts_as_a_check_in(
    door, changes, refused
):
    guest = await door.guest(**changes)
    text = await door.pass_of(guest)
    first = await door.scan(text, arrivals=2)
    assert (first["result"], first["overridable"]) == (refused, True)
    assert "override" in first["actions"]
    assert await door.now_of(guest) == guest

    verdict = await door.scan(text, arrivals=2, override={"reason": "connu de la maison"})

    assert (verdict["result"], verdict["colour"]) == ("checked_in", "green")
    assert verdict["overrode"] == refused
    assert (await door.now_of(guest)).arrived == 2
    assert await door.rows(EVENTS) == [("reservation.checked_in",)]
    assert await door.rows("SELECT reason FROM scan_log ORDER BY seq") == [
        (None,), ("connu de la maison",),
    ]  # fmt: skip


@pytest.mark.parametrize("code", ["unknown thing", "SVC1AAAA"])
async def test_a_guest_unknown_to_the_box_cannot_be_admitted_with_a_reason(door, code):
    verdict = await door.scan(code, override={"reason": "je le connais"})

    assert (verdict["colour"], verdict["overridable"]) == ("red", False)
    assert verdict["reservation"] is verdict["firstCheckIn"] is None
    assert await door.rows("SELECT admitted, reason FROM scan_log") == [(0, None)]


async def test_a_repeated_scan_gets_the_same_answer_and_is_logged_once(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    first = await door.scan(text, scanId="one", arrivals=1)
    await door.scan(text, scanId="two", arrivals=2)
    door.clock.advance(3600)

    again = await door.scan(text, scanId="one", arrivals=1)

    assert again == first
    assert await door.scan("SVC-2222", scanId="one") == first
    assert (await door.now_of(guest)).arrived == 3
    assert await door.rows("SELECT count(*) FROM scan_log") == [(2,)]


async def test_the_same_scan_id_from_two_terminals_is_two_scans(door):
    text = await door.pass_of(await door.guest(guests=2))
    await door.scan(text, scanId="one", arrivals=1)

    verdict = await (await door.other()).scan(text, scanId="one", arrivals=1)

    assert verdict["result"] == "party_added"
    assert await door.rows("SELECT count(*) FROM scan_log") == [(2,)]


async def test_a_repeated_scan_does_not_show_the_name_of_an_erased_guest(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    await door.scan(text, scanId="one")
    await door.environment.database.write(
        update_reservation, guest.id, customer_name=None, notes=None
    )

    again = await door.scan(text, scanId="one")

    assert again["result"] == "checked_in"
    assert again["reservation"]["customerFirstName"] is again["reservation"]["notes"] is None


async def test_a_simulated_scan_returns_a_verdict_and_changes_nothing(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)

    verdict = await door.scan(text, scanId="one", simulate=True)
    assert await door.now_of(guest) == guest
    real = await door.scan(text, scanId="one")

    assert verdict == {**real, "simulated": True}
    assert await door.rows("SELECT count(*) FROM scan_log") == [(1,)]
    assert await door.rows(EVENTS) == [("reservation.checked_in",)]


async def test_fifty_simultaneous_scans_of_one_pass_admit_the_party_once(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    doors = [door, *[await door.other(f"Porte {n}") for n in range(2, 6)]]

    verdicts = await asyncio.gather(*(doors[n % 5].scan(text) for n in range(50)))
    copies = await asyncio.gather(*(door.scan(text, scanId="one") for _ in range(50)))

    assert Counter(v["result"] for v in verdicts) == {"checked_in": 1, "already_checked_in": 49}
    assert (await door.now_of(guest)).arrived == 4
    assert all(copy == copies[0] for copy in copies)
    assert await door.rows("SELECT count(*) FROM scan_log") == [(51,)]
    assert await door.rows(EVENTS) == [("reservation.checked_in",)]


async def test_a_guest_chosen_from_the_list_can_be_checked_in(door):
    guest = await door.guest(guests=3)

    status, verdict = await door.call(
        "POST", "/check-ins", {"scanId": "one", "reservationId": guest.id, "arrivals": 2}
    )

    assert status == 200
    assert (verdict["result"], verdict["admitted"]) == ("checked_in", 2)
    assert await door.rows("SELECT kind, admitted FROM scan_log") == [("list", 2)]


async def test_a_foreign_text_is_logged_as_its_hash_with_the_terminals_time(door):
    await door.scan("https://secret.example/token", at="2026-11-21T18:59:30+00:00")

    ((kind, read_hash, verdict, late),) = await door.rows(
        "SELECT kind, read_hash, verdict, at - device_at FROM scan_log"
    )
    assert (kind, len(read_hash), late) == ("other", 32, 30_000)
    assert "secret" not in verdict
