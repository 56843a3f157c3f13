"""Parties that have left or did not come: their tables are free immediately."""

import re

import pytest

from appliance.reservations.change import move_to_table
from tests.app.portal.people import a_person
from tests.app.portal.seating import as_it_is, path_of, rows, seat
from tests.builders import TONIGHT, a_body, table_id

HOUR = 3600
EVENTS = "SELECT type FROM event ORDER BY seq"


async def act(person, running, reservation, what, **form):
    now = await as_it_is(running, reservation)
    status, page, _ = await person.post(path_of(reservation, what), {"seen": now.version, **form})
    return status, page


async def availability(running, number="T1", slot="19:30"):
    path = f"/v1/availability?date={TONIGHT}&slot={slot}"
    _, body, _ = await running.call("GET", path)
    return {table["id"]: table["available"] for table in body["tables"]}[table_id(number)]


async def seated(running, **changes):
    return await seat(running, arrived=2, checked_in_at=running.clock.now(), **changes)


async def test_marking_a_party_as_left_frees_its_table_and_keeps_its_check_in(running, host):
    salma = await seated(running)
    assert not await availability(running)
    running.clock.advance(75 * 60)

    assert (await act(host, running, salma, "left"))[0] == 303

    now = await as_it_is(running, salma)
    assert (now.status, now.left_at) == ("completed", running.clock.now())
    assert now.checked_in_at == salma.checked_in_at
    assert await availability(running)
    _, read, _ = await running.call("GET", f"/v1/reservations/{salma.id}")
    assert read["endsAt"] == "2026-11-21T20:15:00.000Z"
    status, body, _ = await running.call("POST", "/v1/reservations", json=a_body(slot="19:30"))
    assert (status, body["status"]) == (201, "confirmed")
    assert await rows(running, "SELECT kind FROM email WHERE kind = 'cancelled'") == []
    assert "reservation.cancelled" not in str(await rows(running, EVENTS))
    _, page, _ = await host.get("/portal/tonight")
    assert re.search(r'class="gone[^>]*data-reservation="' + salma.id, page)
    assert "left 20:15" in page


async def test_the_export_contains_the_time_at_which_a_party_left(running, manager):
    salma = await seated(running)
    running.clock.advance(2 * HOUR)
    await act(manager, running, salma, "left")

    _, text, _ = await manager.get("/portal/reservations/export.csv")
    assert f'"{TONIGHT} 21:00"' in text or f";{TONIGHT} 21:00;" in text


async def test_marking_as_left_can_be_undone_while_the_table_is_free(running, host):
    salma = await seated(running)
    await act(host, running, salma, "left")
    _, page, _ = await host.get(path_of(salma))
    assert path_of(salma, "take-back") in page

    assert (await act(host, running, salma, "take-back"))[0] == 303
    now = await as_it_is(running, salma)
    assert (now.status, now.left_at, now.arrived) == ("confirmed", None, 2)
    assert not await availability(running)

    await act(host, running, salma, "left")
    await seat(running, access_code=None)
    _, page, _ = await host.get(path_of(salma))
    assert path_of(salma, "take-back") not in page
    status, _ = await act(host, running, salma, "take-back")
    assert status == 409
    assert (await as_it_is(running, salma)).status == "completed"


async def test_marking_as_left_cannot_be_undone_after_the_evening(running, host):
    salma = await seated(running)
    await act(host, running, salma, "left")
    running.clock.advance(11 * HOUR)
    host = await a_person(running, "host", "Later")

    _, page, _ = await host.get(path_of(salma))
    assert path_of(salma, "take-back") not in page
    assert (await act(host, running, salma, "take-back"))[0] == 409


@pytest.mark.parametrize("changes", [{"arrived": 0}, {"arrived": 1, "status": "declined"}])
async def test_only_an_arrived_party_can_be_marked_as_left(running, host, changes):
    salma = await seat(running, **changes)

    assert (await act(host, running, salma, "left"))[0] == 409
    assert (await as_it_is(running, salma)).left_at is None


async def test_a_no_show_is_cancelled_for_partners_and_no_email_is_sent(running, host):
    _, body, _ = await running.call("POST", "/v1/reservations", json=a_body(slot="19:30"))
    id_ = body["serviceReservationId"]
    running.clock.advance(HOUR)
    host = await a_person(running, "host", "Later")
    [(before,)] = await rows(running, "SELECT count(*) FROM email")

    status, _, _ = await host.post(f"/portal/reservations/{id_}/no-show", {"seen": 1})

    assert status == 303
    _, read, _ = await running.call("GET", f"/v1/reservations/{id_}")
    assert (read["status"], read["noShow"], read["cancelledBy"]) == ("cancelled", True, "venue")
    assert (await rows(running, EVENTS))[-1] == ("reservation.cancelled",)
    assert await rows(running, "SELECT count(*) FROM email") == [(before,)]
    assert await availability(running)
    _, listed, _ = await host.get("/portal/reservations")
    assert "No-show" in listed

    await host.post(f"/portal/reservations/{id_}/take-back", {"seen": 2})
    _, read, _ = await running.call("GET", f"/v1/reservations/{id_}")
    assert (read["status"], read["noShow"]) == ("confirmed", False)
    assert (await rows(running, EVENTS))[-1] == ("reservation.confirmed",)
    assert not await availability(running)


@pytest.mark.parametrize(
    "changes", [{"arrived": 1}, {"status": "requested"}, {"slot": "22:00"}, {"date": "2026-11-22"}]
)
async def test_a_guest_who_arrived_or_is_not_due_yet_cannot_be_a_no_show(running, host, changes):
    running.clock.advance(HOUR)
    salma = await seat(running, **changes)

    _, page, _ = await host.get(path_of(salma))
    assert path_of(salma, "no-show") not in page
    assert (await act(host, running, salma, "no-show"))[0] == 409
    assert (await as_it_is(running, salma)).status == salma.status


@pytest.mark.parametrize(
    ("minutes", "changes", "late"),
    [
        (29 + 20, {}, None), (31 + 20, {}, 21), (31 + 20, {"arrived": 1}, None),
        (31 + 20, {"status": "requested"}, None), (31 + 20, {"status": "pending"}, 21),
        (31 + 20, {"date": "2026-11-20"}, None), (31 + 20, {"slot": None}, 21),
    ],
)  # fmt: skip
async def test_a_party_becomes_late_after_the_minutes_set_by_the_venue(
    running, host, minutes, changes, late
):
    rule = """UPDATE venue SET policies = '{"lateArrivalMinutes": 20}'"""
    salma = await seat(running, **changes)
    running.clock.advance(minutes * 60)
    _, before, _ = await host.get(path_of(salma))
    assert "min</span>" not in before
    await running.live.database.write(lambda tx: tx.execute(rule))

    _, page, _ = await host.get(path_of(salma))
    _, board, _ = await host.get(f"/portal/tonight?date={salma.date}")

    assert (f"late {late} min" in page) == (late is not None)
    assert ("overdue" in board) == (late is not None)


async def test_door_staff_cannot_mark_parties_as_left_or_no_show(running):
    salma = await seated(running)
    person = await a_person(running, "door", "Karim")

    _, page, _ = await person.get(path_of(salma))
    assert path_of(salma, "left") not in page
    for what in ("left", "no-show", "take-back"):
        assert (await act(person, running, salma, what))[0] == 403


async def test_a_party_that_left_its_table_does_not_block_a_move_to_it(running, host):
    salma = await seated(running)
    await act(host, running, salma, "left")
    omar = await seat(running, table="T2", access_code=None, customer_name="Omar")

    await running.live.database.write(move_to_table, omar.id, table_id("T1"), actor="box")

    assert (await as_it_is(running, omar)).table_number == "T1"
