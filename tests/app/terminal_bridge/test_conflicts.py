"""Conflicts: offline admissions against the box's data are counted and shown to every terminal."""

import pytest

from appliance.door.offline_sync import list_open_conflicts
from appliance.door.terminals import edit_terminal, terminal_mark
from tests.app.terminal_bridge.apart import a_scan, sync
from tests.app.terminal_bridge.listening import listening

REASON = {"reason": "connu de la maison"}


@pytest.fixture
async def there(door):
    return await door.other()


async def lower(door, role):
    """Reduce the role of this terminal, as a manager does."""
    seen, database = terminal_mark("Porte 1", "override"), door.environment.database
    await database.write(edit_terminal, door.terminal_id, seen, "Porte 1", role)


async def open_conflicts(door):
    _, evening = await door.call("GET", "/evening")
    return evening["conflicts"]


async def test_two_offline_doors_cause_exactly_one_conflict_shown_to_both(door, there):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    async with listening(door) as here, listening(there) as ear:
        (first,) = await sync(door, a_scan(code=text, arrivals=4, at="2026-11-21T18:41:00Z"))
        (second,) = await sync(there, a_scan(code=text, arrivals=4, at="2026-11-21T18:52:00Z"))
        heard = [await here.until("conflict"), await ear.until("conflict")]

    assert first["conflict"] is None
    conflict = second["conflict"]
    assert (conflict["kind"], conflict["arrived"], conflict["guests"]) == ("admitted_twice", 8, 4)
    assert conflict["other"]["terminal"] == "Porte 1"
    assert conflict["other"]["at"] == "2026-11-21T18:41:00.000Z"
    assert [found.data["conflict"]["id"] for found in heard] == [conflict["id"]] * 2
    assert [found.data["conflict"]["other"]["terminal"] for found in heard] == [
        "Porte 2", "Porte 1",
    ]  # fmt: skip
    assert [found["id"] for found in await open_conflicts(door)] == [conflict["id"]]
    assert await door.rows("SELECT type FROM event") == [("reservation.checked_in",)]
    found = await door.rows("SELECT scan_seq, other_seq, despite FROM door_conflict")
    assert found == [(2, 1, "already_checked_in")]


async def test_a_conflict_found_the_next_morning_is_sent_to_the_feed_too(door, there):
    text = await door.pass_of(await door.guest(guests=2))
    await door.scan(text)
    door.clock.set("2026-11-22T09:00:00Z")
    async with listening(door) as here:
        (result,) = await sync(there, a_scan(code=text))
        heard = await here.until("conflict")

    assert (result["result"], result["overrode"]) == ("party_added", "already_checked_in")
    assert heard.data["conflict"]["id"] == result["conflict"]["id"]
    assert heard.data["reservation"]["date"] == "2026-11-21"


async def test_a_guest_admitted_before_the_boxs_refusal_arrived_is_counted_as_a_conflict(
    door, there
):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    await door.scan(text)
    late = a_scan(code=text)
    status, refused = await there.call("POST", "/scans", {"scanId": late["scanId"], "code": text})
    assert (status, refused["result"]) == (200, "already_checked_in")

    (first,) = await sync(there, late)
    (again,) = await sync(there, late)

    assert first["conflict"]["kind"] == "admitted_twice"
    assert again["conflict"]["id"] == first["conflict"]["id"]
    assert (await door.now_of(guest)).arrived == 4
    assert len(await open_conflicts(door)) == 1


async def test_parts_of_a_party_admitted_at_two_doors_are_no_conflict(door, there):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    (one,) = await sync(door, a_scan(code=text, arrivals=2))

    (two,) = await sync(there, a_scan(code=text, arrivals=2))

    assert (one["conflict"], two["conflict"]) == (None, None)
    assert (await door.now_of(guest)).arrived == 4


async def test_admitting_a_party_cancelled_in_the_meantime_is_a_conflict(door):
    guest = await door.guest(status="cancelled")

    (result,) = await sync(door, a_scan(code=await door.pass_of(guest)))

    conflict = result["conflict"]
    assert (conflict["kind"], conflict["despite"]) == ("admitted_anyway", "cancelled")
    assert conflict["other"] == {
        "terminalId": None, "terminal": None, "at": "2026-11-21T18:50:00.000Z",
    }  # fmt: skip
    assert (await door.now_of(guest)).status == "cancelled"


async def test_acknowledging_a_conflict_closes_it_and_notifies_every_terminal(door, there):
    text = await door.pass_of(await door.guest())
    await sync(door, a_scan(code=text))
    (result,) = await sync(there, a_scan(code=text))
    path = f"/conflicts/{result['conflict']['id']}/acknowledge"
    async with listening(door) as here:
        answers = [await there.call("POST", path), await there.call("POST", path)]
        heard = await here.until("conflict")

    assert [status for status, _ in answers] == [200, 200]
    assert heard.data["conflict"]["acknowledged"] is True
    assert await door.environment.database.read(list_open_conflicts) == []
    assert await open_conflicts(door) == []
    assert await door.rows("SELECT acknowledged_by FROM door_conflict") == [
        (f"terminal:{there.terminal_id}",)
    ]


@pytest.mark.parametrize(
    ("role", "name", "status"),
    [("override", "nobody", 404), ("override", "01980000-0000-7000-8000-000000000001", 404),
     ("search", "x", 403)],
)  # fmt: skip
async def test_a_wrong_id_or_an_insufficient_role_cannot_acknowledge_a_conflict(
    door, role, name, status
):
    other = await door.other(role=role)

    assert (await other.call("POST", f"/conflicts/{name}/acknowledge"))[0] == status


@pytest.mark.parametrize(
    ("code", "despite"),
    [("ben", "ambiguous"), ("Zoubida", "unknown_code"), ("SVC-7K2M", "unknown_code")],
)
async def test_admitting_a_guest_whom_the_box_cannot_identify_is_a_conflict(door, code, despite):
    await door.guest(customer_name="Benoît Martin", guests=4)
    await door.guest(customer_name="Sara Ben Ali", table="T2")
    scan = a_scan(code=code)
    async with listening(door) as here:
        (result,) = await sync(door, scan)
        heard = await here.until("conflict")

    conflict = result["conflict"]
    assert (conflict["kind"], conflict["despite"]) == ("admitted_anyway", despite)
    assert (conflict["reservationId"], conflict["arrived"], conflict["guests"]) == (None, 0, 0)
    assert conflict["admissions"] == [
        {"terminalId": door.terminal_id, "terminal": "Porte 1", "at": "2026-11-21T18:50:00.000Z"}
    ]
    assert heard.data["conflict"]["id"] == conflict["id"]
    assert await sync(door, scan) == [result]
    assert await open_conflicts(door) == [conflict]
    assert (await door.call("POST", f"/conflicts/{conflict['id']}/acknowledge"))[0] == 200
    assert await open_conflicts(door) == []


@pytest.mark.parametrize("role", ["search", "scan"])
async def test_an_admission_by_a_terminal_that_lost_the_role_counts_with_a_conflict_naming_the_role(
    door, there, role
):
    """The role was taken away between the offline override and the upload."""
    guest = await door.guest(status="pending")
    scan = a_scan(code=await door.pass_of(guest), shown="payment_due", override=REASON)
    await lower(door, role)

    (result,) = await sync(door, scan)

    assert await sync(door, scan) == [result]
    conflict = result["conflict"]
    assert (result["admitted"], result["overrode"]) == (2, "payment_due")
    assert (conflict["kind"], conflict["roleMissing"]) == ("admitted_anyway", "override")
    assert [one["id"] for one in await open_conflicts(there)] == [conflict["id"]]
    assert (await door.now_of(guest)).arrived == 2
    assert await door.rows("SELECT reason FROM scan_log") == [("connu de la maison",)]

    await door.environment.database.write(
        lambda tx: tx.execute("UPDATE scan_log SET reason = NULL")
    )
    (forgotten,) = await open_conflicts(there)
    assert (forgotten["kind"], forgotten["roleMissing"]) == ("admitted_anyway", None)


@pytest.mark.parametrize("role", ["override", "scan"])
async def test_a_second_admission_is_the_conflict_reported_whatever_the_role_and_reason(
    door, there, role
):
    guest = await door.guest(guests=2, status="pending")
    text = await door.pass_of(guest)
    await sync(there, a_scan(code=text, shown="payment_due", override=REASON))
    await lower(door, role)

    (result,) = await sync(door, a_scan(code=text, shown="payment_due", override=REASON))

    conflict = result["conflict"]
    assert (result["admitted"], conflict["other"]["terminal"]) == (2, "Porte 2")
    assert (conflict["kind"], conflict["roleMissing"]) == ("admitted_twice", None)


async def test_a_scan_with_a_conflict_does_not_stop_the_other_scans_of_the_upload(door):
    guests = [await door.guest(table=table) for table in ("T1", "T2")]
    owing = await door.guest(table="T3", status="pending")
    scans = [a_scan(code=await door.pass_of(guest), override=REASON) for guest in guests]
    scans.insert(1, a_scan(code=await door.pass_of(owing), shown="payment_due", override=REASON))
    await lower(door, "scan")

    results = await sync(door, *scans)

    assert [result["admitted"] for result in results] == [2, 2, 2]
    assert [bool(result["conflict"]) for result in results] == [False, True, False]


@pytest.mark.parametrize("role", ["scan", "search", "override"])
@pytest.mark.parametrize(
    ("changes", "despite"),
    [({"date": "2026-11-22"}, "not_yet"), ({"date": "2026-11-20"}, "too_late"),
     ({"slot": "23:30"}, "not_yet")],
)  # fmt: skip
async def test_admitting_a_guest_of_another_evening_without_the_override_role_is_a_conflict(
    door, role, changes, despite
):
    other = await door.other(role=role)
    guest = await door.guest(**changes)

    (result,) = await sync(other, a_scan(code=await door.pass_of(guest), shown="checked_in"))

    conflict = result["conflict"]
    if role == "override":
        assert (result["overrode"], conflict) == (despite, None)
    else:
        assert (conflict["kind"], conflict["despite"]) == ("admitted_anyway", despite)
        assert conflict["reservationId"] == guest.id
        assert [one["id"] for one in await open_conflicts(door)] == [conflict["id"]]
