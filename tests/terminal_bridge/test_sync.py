"""Scans made out of the box's reach: what happened is counted, once."""

import pytest

from tests.appliance.arrivals import add_reservation
from tests.terminal_bridge.apart import a_scan, sync


async def test_whom_the_door_let_in_is_in_since_then_and_announced_once(door):
    guest = await door.guest(guests=3)

    (result,) = await sync(door, a_scan(code=await door.pass_of(guest), arrivals=3))

    assert (result["result"], result["admitted"], result["conflict"]) == ("checked_in", 3, None)
    assert result["firstCheckIn"]["at"] == "2026-11-21T18:50:00.000Z"
    assert (await door.now_of(guest)).arrived == 3
    assert (await door.now_of(guest)).checked_in_at == door.clock.now() - 600_000
    assert await door.rows("SELECT type FROM event") == [("reservation.checked_in",)]


async def test_both_times_are_kept_the_device_s_own_and_the_corrected_one(door):
    guest = await door.guest()
    scan = a_scan(code=await door.pass_of(guest), at="2026-11-21T16:50:00Z")

    (result,) = await sync(door, scan, sentAt="2026-11-21T17:00:00Z")  # two hours slow

    assert result["happenedAt"] == "2026-11-21T18:50:00.000Z"
    ((device_at, happened_at),) = await door.rows("SELECT device_at, happened_at FROM scan")
    assert (door.clock.now() - device_at, door.clock.now() - happened_at) == (7_800_000, 600_000)


@pytest.mark.parametrize(
    ("at", "happened"),
    [
        ("2031-01-01T00:00:00Z", "2026-11-21T19:00:00.000Z"),
        ("1970-01-01T00:00:00Z", "2026-11-19T19:00:00.000Z"),
    ],
)
async def test_a_clock_that_is_far_off_moves_nothing_into_another_age(door, at, happened):
    guest = await door.guest()

    (result,) = await sync(door, a_scan(code=await door.pass_of(guest), at=at))

    assert (result["happenedAt"], result["admitted"]) == (happened, 2)
    assert result["conflict"] is None


async def test_the_same_scan_again_gets_the_same_answer_and_changes_nothing(door):
    guest = await door.guest()
    await door.scan(await door.pass_of(guest))
    scan = a_scan(code=await door.pass_of(guest), arrivals=2)
    first = await sync(door, scan)

    again = await sync(door, scan, scan)

    assert again == [first[0], first[0]]
    assert first[0]["conflict"] is not None
    assert (await door.now_of(guest)).arrived == 4
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(1,)]


async def test_a_scan_whose_online_answer_was_lost_is_not_counted_twice(door):
    guest = await door.guest()
    text = await door.pass_of(guest)
    await door.scan(text, scanId="lost")

    (result,) = await sync(door, a_scan(code=text, scanId="lost"))

    assert (result["result"], result["conflict"]) == ("checked_in", None)
    assert (await door.now_of(guest)).arrived == 2


async def test_scans_are_decided_in_the_order_in_which_they_happened(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    late = a_scan(code=text, arrivals=1, at="2026-11-21T18:40:00Z", shown="party_added")
    early = a_scan(code=text, arrivals=2, at="2026-11-21T18:30:00Z")

    results = await sync(door, late, early)

    assert [result["result"] for result in results] == ["party_added", "checked_in"]
    assert results[0]["firstCheckIn"]["at"] == "2026-11-21T18:30:00.000Z"


async def test_whom_the_door_did_not_let_in_stays_outside(door):
    guest = await door.guest()
    text = await door.pass_of(guest)

    results = await sync(
        door,
        a_scan(code=text, shown="not_yet"),
        a_scan(code=text, shown="unlisted"),
        a_scan(code="SVC-7K2M", shown="unknown_code"),
    )

    assert [result["result"] for result in results] == ["not_yet", "error", "unknown_code"]
    assert [result["admitted"] for result in results] == [0, 0, 0]
    assert (await door.now_of(guest)).arrived == 0
    assert await door.rows("SELECT count(*) FROM scan") == [(3,)]


async def test_whom_staff_let_in_with_a_reason_is_in_and_no_conflict(door):
    guest = await door.guest(status="pending")
    scan = a_scan(code=await door.pass_of(guest), override={"reason": "a payé en espèces"})

    (result,) = await sync(door, scan)

    assert (result["result"], result["overrode"]) == ("checked_in", "payment_due")
    assert result["conflict"] is None
    assert await door.rows("SELECT reason FROM scan") == [("a payé en espèces",)]


async def test_a_scan_that_its_terminal_did_not_decide_is_decided_now(door):
    guest = await door.guest(status="pending")

    (result,) = await sync(door, a_scan(code=await door.pass_of(guest), shown=None))

    assert (result["result"], result["admitted"]) == ("payment_due", 0)


async def test_a_guest_from_the_list_and_one_by_a_code_or_a_first_name_are_let_in(door):
    one = await door.guest()
    two = await door.guest(table="T2", access_code="SVC-7K2M")
    three = await door.guest(table="T3", customer_name="Omar Alami")

    results = await sync(
        door, a_scan(reservationId=one.id), a_scan(code="7k2m"), a_scan(code="Omar")
    )

    assert [result["result"] for result in results] == ["checked_in"] * 3
    assert [result["reservation"]["id"] for result in results] == [one.id, two.id, three.id]


async def test_a_code_of_yesterday_evening_is_found_after_the_evening_is_over(door):
    guest = await door.guest(access_code="SVC-7K2M")
    door.clock.set("2026-11-22T09:00:00Z")

    (result,) = await sync(door, a_scan(code="SVC-7K2M", at="2026-11-21T23:00:00Z"))

    assert (result["result"], result["conflict"]) == ("checked_in", None)
    assert (await door.now_of(guest)).arrived == 2


async def test_five_hundred_scans_come_in_one_call_and_no_more(door):
    def fill(tx):
        return [
            add_reservation(
                tx, table=f"T{n % 6 + 1}", date=TONIGHT, slot=None, starts=n, ends=n + 1
            )
            for n in range(500)
        ]

    guests = await door.environment.database.write(fill)
    texts = [await door.pass_of(guest) for guest in guests]
    scans = [a_scan(code=text) for text in texts]

    results = await sync(door, *scans)
    status, refusal = await door.call("POST", "/sync", {"scans": [*scans, a_scan(code="x")]})

    assert {result["result"] for result in results} == {"checked_in"}
    assert await door.rows("SELECT sum(arrived) FROM reservation") == [(1000,)]
    assert (status, refusal["field"]) == (400, "scans")


TONIGHT = "2026-11-21"


@pytest.mark.parametrize(
    ("scans", "field"),
    [
        (None, "scans"),
        ("many", "scans"),
        ([1], "scans[0]"),
        ([{}], "scans[0].scanId"),
        ([a_scan(code="x"), a_scan(code="")], "scans[1].code"),
        ([a_scan(code="x", at=None)], "scans[0].at"),
        ([a_scan(code="x", at="yesterday")], "scans[0].at"),
        ([a_scan(code="x", shown="Green!")], "scans[0].shown"),
        ([a_scan(code="x", shown=True)], "scans[0].shown"),
        ([a_scan(reservationId="nobody")], "scans[0].reservationId"),
        ([a_scan(code="x", override={})], "scans[0].override.reason"),
    ],
)
async def test_a_malformed_scan_is_named_by_its_place_and_nothing_is_recorded(door, scans, field):
    status, refusal = await door.call("POST", "/sync", {"scans": scans})

    assert (status, refusal["code"], refusal["field"]) == (400, "VALIDATION_ERROR", field)
    assert field in refusal["error"]
    assert await door.rows("SELECT * FROM scan") == []


async def test_a_body_over_half_a_mebibyte_is_refused(door):
    body = b'{"scans":[' + b" " * (512 * 1024) + b"]}"

    status, refusal = await door.call("POST", "/sync", data=body)

    assert (status, refusal["code"]) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize(
    ("role", "members"),
    [
        ("search", {"code": "x", "override": {"reason": "ami"}, "shown": None}),
        ("scan", {"code": "x", "override": {"reason": "ami"}, "shown": None}),
        ("scan", {"reservationId": "01980000-0000-7000-8000-000000000001", "shown": None}),
    ],
)
async def test_what_is_decided_now_needs_the_role_it_needs_before_the_box(door, role, members):
    there = await door.other(role=role)

    status, refusal = await there.call("POST", "/sync", {"scans": [a_scan(**members)]})

    assert (status, refusal["code"]) == (403, "SCOPE_MISSING")


async def test_what_was_let_in_apart_may_be_taken_back_with_a_reason(door):
    guest = await door.guest()
    await sync(door, a_scan(code=await door.pass_of(guest), scanId="apart"))
    door.clock.advance(60)

    status, verdict = await door.call("POST", "/scans/apart/undo", {"reason": "mauvaise table"})

    assert (status, verdict["result"]) == (200, "undone")
    assert (await door.now_of(guest)).arrived == 0
