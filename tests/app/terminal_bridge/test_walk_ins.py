"""Walk-ins at a terminal, and parties that are late, did not come or have left."""

import asyncio
from datetime import date

import pytest

from appliance.reservations.figures import count_figures
from tests.app.terminal_bridge.apart import a_scan, sync
from tests.builders import TONIGHT, table_id
from tests.conftest import set_rules

FOUND = "SELECT guests, arrived, walk_in, slot FROM reservation"
PEOPLE = {"scanId": "walk-1", "arrivals": 3}
LATE = '{"lateArrivalMinutes": 15}'


async def test_a_walk_in_is_booked_and_checked_in_once_per_scan(door):
    body = PEOPLE | {"tableId": table_id("T2")}

    answers = await asyncio.gather(*(door.call("POST", "/walk-ins", body) for _ in range(3)))

    assert {(status, verdict["result"]) for status, verdict in answers} == {(200, "checked_in")}
    assert await door.rows(FOUND) == [(3, 3, 1, "19:30")]
    assert await door.rows("SELECT table_id FROM hold") == [(table_id("T2"),)]
    assert [row[0] for row in await door.rows("SELECT type FROM event ORDER BY seq")] == [
        "reservation.created", "reservation.checked_in",
    ]  # fmt: skip


async def test_undoing_a_seated_walk_in_frees_its_table_and_counts_nothing(door):
    await door.call("POST", "/walk-ins", PEOPLE | {"tableId": table_id("T2")})

    status, verdict = await door.call("POST", "/scans/walk-1/undo", {})

    assert (status, verdict["result"], verdict["reservation"]["status"]) == (
        200, "undone", "cancelled",
    )  # fmt: skip
    assert await door.rows("SELECT * FROM hold") == []
    figures = await door.environment.database.read(count_figures, date.fromisoformat(TONIGHT))
    assert (figures.walk_ins, figures.cancelled, figures.no_shows, figures.covers) == (0, 0, 0, 0)
    _, seated = await door.call(
        "POST", "/walk-ins", PEOPLE | {"scanId": "walk-2", "tableId": table_id("T2")}
    )
    assert seated["result"] == "checked_in"


async def test_free_tables_are_listed_best_first_and_an_occupied_one_is_refused(door):
    await door.guest(table="T1", slot="19:30")

    status, found = await door.call("GET", "/tables?guests=3")

    assert (status, found["slot"]) == (200, {"start": "19:30", "end": "22:00"})
    assert table_id("T1") not in {table["id"] for table in found["items"]}
    capacities = [table["capacityMax"] for table in found["items"]]
    assert capacities == sorted(capacities)
    status, refusal = await door.call("POST", "/walk-ins", PEOPLE | {"tableId": table_id("T1")})
    assert (status, refusal["code"]) == (409, "TABLE_TAKEN")
    assert await door.rows("SELECT * FROM scan_log") == []


@pytest.mark.parametrize("guests", ["", "0", "many", "1000"])
async def test_an_invalid_number_of_walk_in_guests_is_refused(door, guests):
    status, refusal = await door.call("GET", f"/tables?guests={guests}")

    assert (status, refusal["field"]) == (400, "guests")


async def test_walk_ins_without_a_table_are_counted_in_and_out_and_can_be_undone(door):
    _, verdict = await door.call("POST", "/walk-ins", PEOPLE)
    assert (verdict["result"], verdict["colour"], verdict["admitted"]) == ("walk_in", "green", 3)
    leaving = {"scanId": "walk-2", "arrivals": 1, "leaving": True, "tableId": table_id("T1")}
    _, left = await door.call("POST", "/walk-ins", leaving)
    assert (left["result"], left["moved"]) == ("went_out", -1)
    assert await door.rows(FOUND) == []

    _, evening = await door.call("GET", "/evening")
    assert (evening["totals"]["withoutTable"], evening["totals"]["inside"]["people"]) == (2, 2)
    status, undone = await door.call("POST", "/scans/walk-1/undo", {})
    assert (status, undone["result"], undone["admitted"]) == (200, "undone", -3)
    _, evening = await door.call("GET", "/evening")
    assert (evening["totals"]["withoutTable"], evening["totals"]["inside"]["people"]) == (-1, 0)


async def test_walk_ins_admitted_offline_are_counted_once_without_a_table(door):
    scan = a_scan(walkIn=True, arrivals=4, shown="walk_in")

    for _ in range(2):
        (result,) = await sync(door, scan)
        assert (result["result"], result["admitted"], result["conflict"]) == ("walk_in", 4, None)
    await sync(door, a_scan(walkIn=True, arrivals=2, shown="undone"))

    _, evening = await door.call("GET", "/evening")
    assert evening["totals"]["withoutTable"] == 4


@pytest.mark.parametrize("role", ["scan", "search"])
async def test_only_the_override_role_can_seat_walk_ins_and_report_no_shows(door, role):
    guest = await door.guest()
    other = await door.other(role=role)

    for method, path, body in (
        ("GET", "/tables?guests=2", None),
        ("POST", "/walk-ins", PEOPLE),
        ("POST", f"/reservations/{guest.id}/left", {}),
        ("POST", f"/reservations/{guest.id}/no-show", {}),
        ("POST", f"/reservations/{guest.id}/take-back", {}),
        ("POST", "/sync", {"scans": [{**PEOPLE, "walkIn": True, "at": "2026-11-21T18:50:00Z"}]}),
    ):
        status, refusal = await other.call(method, path, body)
        assert (status, refusal["code"]) == (403, "SCOPE_MISSING")


async def test_a_party_becomes_late_after_the_venues_minutes_and_can_be_marked_as_no_show(door):
    await set_rules(door.environment, policies=LATE)
    guest = await door.guest(slot="19:30")
    _, evening = await door.call("GET", "/evening")
    assert evening["items"][0]["lateFrom"] == "2026-11-21T19:45:00.000Z"
    door.clock.advance(46 * 60)

    status, answer = await door.call("POST", f"/reservations/{guest.id}/no-show", {})

    assert (status, answer["reservation"]["gone"]) == (200, "no_show")
    assert answer["reservation"]["lateFrom"] is None
    assert await door.rows("SELECT * FROM hold") == []
    await door.call("POST", f"/reservations/{guest.id}/take-back", {})
    assert (await door.now_of(guest)).status == "confirmed"


async def test_nobody_is_late_without_a_rule_or_after_a_guest_of_the_party_arrived(door):
    guest = await door.guest(slot="19:30")
    _, evening = await door.call("GET", "/evening")
    assert evening["items"][0]["lateFrom"] is None

    await set_rules(door.environment, policies=LATE)
    await door.scan(await door.pass_of(guest), arrivals=1)
    _, evening = await door.call("GET", "/evening")
    assert evening["items"][0]["lateFrom"] is None
