"""Uploaded offline scans are counted once, with the result that they would have had online."""

import pytest

from tests.app.terminal_bridge.apart import a_scan, sync
from tests.unit.arrivals import add_reservation

REASON = {"reason": "un de plus, vu avec l'hôte"}
CODE = "SVC-7K2M"
WRITTEN = "SELECT result, admitted, reason FROM scan_log"


async def test_an_offline_admission_counts_from_its_own_time_and_is_announced_once(door):
    guest = await door.guest(guests=3)
    text = await door.pass_of(guest)

    (result,) = await sync(door, a_scan(code=text, arrivals=3))

    assert (result["result"], result["admitted"], result["conflict"]) == ("checked_in", 3, None)
    first = {"at": "2026-11-21T18:50:00.000Z", "terminal": "Porte 1", "by": None}
    assert result["firstCheckIn"] == first
    assert (await (await door.other()).scan(text))["firstCheckIn"] == first
    assert (await door.now_of(guest)).arrived == 3
    assert (await door.now_of(guest)).checked_in_at == door.clock.now() - 600_000
    assert await door.rows("SELECT type FROM event") == [("reservation.checked_in",)]


async def test_the_device_time_and_the_corrected_time_of_a_scan_are_both_stored(door):
    guest = await door.guest()
    scan = a_scan(code=await door.pass_of(guest), at="2026-11-21T16:50:00Z")

    (result,) = await sync(door, scan, sentAt="2026-11-21T17:00:00Z")  # the clock is 2 h slow

    assert result["happenedAt"] == "2026-11-21T18:50:00.000Z"
    ((device_at, happened_at),) = await door.rows("SELECT device_at, happened_at FROM scan_log")
    assert (door.clock.now() - device_at, door.clock.now() - happened_at) == (7_800_000, 600_000)


@pytest.mark.parametrize(
    ("at", "happened"),
    [("2031-01-01T00:00:00Z", "2026-11-21T19:00:00.000Z"),
     ("1970-01-01T00:00:00Z", "2026-11-19T19:00:00.000Z")],
)  # fmt: skip
async def test_a_scan_from_a_very_wrong_clock_gets_a_plausible_time(door, at, happened):
    guest = await door.guest()

    (result,) = await sync(door, a_scan(code=await door.pass_of(guest), at=at))

    assert (result["happenedAt"], result["admitted"]) == (happened, 2)
    assert result["conflict"] is None


async def test_uploading_a_scan_again_gets_the_same_answer_and_changes_nothing(door):
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


async def test_uploaded_scans_are_decided_in_the_order_in_which_they_happened(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    late = a_scan(code=text, arrivals=1, at="2026-11-21T18:40:00Z", shown="party_added")
    early = a_scan(code=text, arrivals=2, at="2026-11-21T18:30:00Z")

    results = await sync(door, late, early)

    assert [result["result"] for result in results] == ["party_added", "checked_in"]
    assert results[0]["firstCheckIn"]["at"] == "2026-11-21T18:30:00.000Z"


async def test_a_guest_whom_the_door_refused_offline_stays_outside(door):
    guest, owing = await door.guest(), await door.guest(table="T2", status="pending")
    text = await door.pass_of(guest)

    results = await sync(
        door,
        a_scan(code=text, shown="not_yet"),
        a_scan(code=text, shown="unlisted"),
        a_scan(code=await door.pass_of(owing), shown=None),  # not decided offline
        a_scan(code=CODE, shown="unknown_code"),
        a_scan(reservationId=owing.id, shown="payment_due"),
    )

    assert [(each["result"], each["admitted"], each["conflict"]) for each in results] == [
        ("not_yet", 0, None), ("error", 0, None), ("payment_due", 0, None),
        ("unknown_code", 0, None), ("payment_due", 0, None),
    ]  # fmt: skip
    assert await door.rows("SELECT DISTINCT arrived FROM reservation") == [(0,)]
    assert await door.rows("SELECT count(*) FROM scan_log") == [(5,)]


async def test_guests_chosen_from_the_list_by_code_or_by_first_name_are_admitted(door):
    one = await door.guest()
    two = await door.guest(table="T2", access_code=CODE)
    three = await door.guest(table="T3", customer_name="Omar Alami")

    results = await sync(
        door, a_scan(reservationId=one.id), a_scan(code="7k2m"), a_scan(code="Omar")
    )

    assert [result["result"] for result in results] == ["checked_in"] * 3
    assert [result["reservation"]["id"] for result in results] == [one.id, two.id, three.id]


@pytest.mark.parametrize("role", ["scan", "search", "override"])
async def test_a_guest_identified_by_the_terminal_is_admitted_whatever_the_role(door, role):
    there = await door.other(role=role)
    guest = await door.guest(customer_name="Benoît Martin", guests=4)
    await door.guest(customer_name="Sara Ben Ali", table="T2")

    (result,) = await sync(there, a_scan(reservationId=guest.id, code="ben", arrivals=3))

    assert (result["result"], result["admitted"]) == ("checked_in", 3)
    assert result["conflict"] is None
    assert (await door.now_of(guest)).arrived == 3


async def test_a_guest_admitted_before_an_ambiguous_answer_arrived_is_counted(door):
    guest = await door.guest(customer_name="Benoît Martin", guests=4)
    await door.guest(customer_name="Sara Ben Ali", table="T2")
    assert (await door.scan("ben", scanId="late"))["result"] == "ambiguous"

    (result,) = await sync(door, a_scan(scanId="late", reservationId=guest.id))

    assert (result["result"], result["conflict"]) == ("checked_in", None)
    assert (await door.now_of(guest)).arrived == 4


async def test_an_access_code_of_yesterday_still_matches_after_the_evening_is_over(door):
    guest = await door.guest(access_code=CODE)
    door.clock.set("2026-11-22T09:00:00Z")

    (result,) = await sync(door, a_scan(code=CODE, at="2026-11-21T23:00:00Z"))

    assert (result["result"], result["conflict"]) == ("checked_in", None)
    assert (await door.now_of(guest)).arrived == 2


@pytest.mark.parametrize(
    ("guests", "inside", "scan", "admitted", "overrode"),
    [({"status": "pending"}, False, {}, 2, "payment_due"),
     ({"guests": 4}, True, {"shown": "already_checked_in"}, 1, "already_checked_in"),
     ({"guests": 4}, True, {"shown": "party_added"}, 1, "already_checked_in"),
     ({"guests": 2}, False, {"arrivals": 3}, 3, "party_full")],
)  # fmt: skip
async def test_an_offline_override_with_a_reason_is_admitted_without_a_conflict(
    door, guests, inside, scan, admitted, overrode
):
    guest = await door.guest(**guests)
    text = await door.pass_of(guest)
    if inside:
        await door.scan(text)

    (result,) = await sync(door, a_scan(code=text, override=REASON, **scan))

    assert (result["admitted"], result["overrode"]) == (admitted, overrode)
    assert result["conflict"] is None
    assert (await door.now_of(guest)).arrived == admitted + inside * guest.guests
    assert (REASON["reason"],) in await door.rows("SELECT reason FROM scan_log")


@pytest.mark.parametrize("inside", [False, True])
async def test_an_offline_admission_that_was_undone_offline_is_logged_but_not_counted(door, inside):
    guest = await door.guest(status="confirmed" if inside else "pending")
    text = await door.pass_of(guest)
    if inside:
        await (await door.other()).scan(text)
    back = {"shown": "undone", "reason": "Repartis", "override": {"reason": "Connu"}}

    (result,) = await sync(door, a_scan(code=text, **back))

    assert (result["result"], result["colour"], result["admitted"]) == ("undone", "grey", 0)
    assert result["conflict"] is None
    assert (await door.now_of(guest)).arrived == 2 * inside
    assert (await door.rows(WRITTEN))[-1] == ("undone", 0, "Repartis")
    assert await door.rows("SELECT count(*) FROM event") == [(int(inside),)]


@pytest.mark.slow
async def test_one_upload_has_at_most_five_hundred_scans(door):
    def fill(tx):
        return [
            add_reservation(tx, table=f"T{n % 6 + 1}", starts=n, ends=n + 1) for n in range(500)
        ]

    guests = await door.environment.database.write(fill)
    scans = [a_scan(code=await door.pass_of(guest)) for guest in guests]

    results = await sync(door, *scans)
    status, refusal = await door.call("POST", "/sync", {"scans": [*scans, a_scan(code="x")]})

    assert {result["result"] for result in results} == {"checked_in"}
    assert await door.rows("SELECT sum(arrived) FROM reservation") == [(1000,)]
    assert (status, refusal["field"]) == (400, "scans")


@pytest.mark.parametrize(
    ("scans", "field"),
    [(None, "scans"), ("many", "scans"), ([1], "scans[0]"), ([{}], "scans[0].scanId"),
     ([a_scan(code="x"), a_scan(code="")], "scans[1].code"),
     ([a_scan(code="x", at=None)], "scans[0].at"),
     ([a_scan(code="x", at="yesterday")], "scans[0].at"),
     ([a_scan(code="x", shown="Green!")], "scans[0].shown"),
     ([a_scan(code="x", shown=True)], "scans[0].shown"),
     ([a_scan(reservationId="nobody")], "scans[0].reservationId"),
     ([a_scan(code="x", override={})], "scans[0].override.reason"),
     ([a_scan(code="x", shown="undone", reason=7)], "scans[0].reason"),
     ([a_scan(code="x", shown="undone", reason="x" * 201)], "scans[0].reason")],
)  # fmt: skip
async def test_an_invalid_scan_is_named_by_its_index_and_nothing_is_stored(door, scans, field):
    status, refusal = await door.call("POST", "/sync", {"scans": scans})

    assert (status, refusal["code"], refusal["field"]) == (400, "VALIDATION_ERROR", field)
    assert await door.rows("SELECT * FROM scan_log") == []


async def test_a_body_over_half_a_mebibyte_is_refused(door):
    body = b'{"scans":[' + b" " * (512 * 1024) + b"]}"

    status, refusal = await door.call("POST", "/sync", data=body)

    assert (status, refusal["code"]) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize(
    ("role", "members"),
    [("search", {"code": "x", "override": REASON}),
     ("scan", {"code": "x", "override": REASON}),
     ("scan", {"reservationId": "01980000-0000-7000-8000-000000000001"})],
)  # fmt: skip
async def test_a_scan_without_an_offline_decision_needs_the_same_role_as_an_online_one(
    door, role, members
):
    there = await door.other(role=role)

    status, refusal = await there.call("POST", "/sync", {"scans": [a_scan(shown=None, **members)]})

    assert (status, refusal["code"]) == (403, "SCOPE_MISSING")


def guesses(count, **members):
    return [a_scan(code="2222", scanId=f"guess-{n}", **members) for n in range(count)]


async def typed(door, code):
    return await door.call("POST", "/scans", {"scanId": "typed", "code": code})


async def test_wrong_codes_tried_offline_count_towards_the_limit_for_a_minute(door):
    await door.guest(access_code=CODE)
    for _ in range(10):
        await door.scan("2222")

    (closed,) = await sync(door, a_scan(code=CODE, shown=None))
    door.clock.advance(61)
    (opened,) = await sync(door, a_scan(code=CODE, shown=None))

    assert (closed["result"], closed["reservation"]) == ("unknown_code", None)
    assert opened["result"] == "checked_in"


async def test_passes_and_chosen_guests_are_accepted_while_typed_codes_are_blocked(door):
    one, two = await door.guest(), await door.guest(table="T2")

    results = await sync(
        door,
        *guesses(12, shown="unknown_code"),
        a_scan(code=await door.pass_of(one), scanId="pass"),
        a_scan(reservationId=two.id, code=CODE, scanId="named"),
    )

    assert [result["result"] for result in results[12:]] == ["checked_in"] * 2
    assert await door.rows("SELECT count(*) FROM scan_log") == [(14,)]


async def test_an_admission_by_a_code_that_the_box_no_longer_accepts_is_a_conflict_and_not_lost(
    door,
):
    await door.guest(access_code=CODE)
    await sync(door, *guesses(10, shown="unknown_code"))

    (result,) = await sync(door, a_scan(code=CODE, scanId="let-in"))

    conflict = result["conflict"]
    assert (conflict["kind"], conflict["reservationId"]) == ("admitted_anyway", None)
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(1,)]
    assert (await sync(door, a_scan(code=CODE, scanId="let-in"))) == [result]
