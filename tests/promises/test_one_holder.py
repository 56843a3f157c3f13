"""If staff and partners request one table at the same moment, it gets one holder."""

import asyncio
import random

import pytest

from appliance.reservations.rows import get_reservation
from tests.app.portal.people import a_person
from tests.app.portal.seating import seat
from tests.builders import TONIGHT, a_body, table_id

ROUNDS = 12
HELD = """SELECT r.id, h.table_id, h.starts, h.ends FROM hold h
          JOIN reservation r ON r.seq = h.reservation_seq ORDER BY 1, 2"""
WANTED = """SELECT id, table_id, starts, ends FROM reservation
            WHERE status IN ('confirmed', 'completed') AND left_at IS NULL ORDER BY 1, 2"""


async def read(running, sql):
    return await running.live.database.read(lambda reader: list(reader.rows(sql)))


async def book(running, number):
    body = a_body(idempotencyKey=f"race-{number}")
    status, _, _ = await running.call("POST", "/v1/reservations", json=body)
    return status


async def change(running, host, what, reservation_id, **form):
    """Submit a form with the current state of the reservation. Return the status."""
    path = f"/portal/reservations/{reservation_id}/{what}"
    now = await running.live.database.read(get_reservation, reservation_id)
    status, _, _ = await host.post(path, {"seen": now.version, **form})
    return status


@pytest.mark.parametrize("seed", range(3))
async def test_simultaneous_staff_actions_and_bookings_leave_one_holder_per_table(running, seed):
    draw = random.Random(seed)
    host = await a_person(running, "host", "Yasmine")
    running.clock.advance(3600)
    salma = await seat(running, arrived=2, checked_in_at=running.clock.now(), ends=22 * 60)
    other = await seat(running, table="T2", access_code=None, customer_name="Omar", ends=22 * 60)
    for number in range(ROUNDS):
        wishes = [
            change(running, host, "left", salma.id),
            change(running, host, "take-back", salma.id),
            change(running, host, "move", other.id, table=table_id("T1")),
            change(running, host, "move", other.id, table=table_id("T2")),
            change(running, host, "no-show", other.id),
            change(running, host, "take-back", other.id),
            book(running, number),
        ]
        draw.shuffle(wishes)
        statuses = await asyncio.gather(*wishes)

        assert set(statuses) <= {201, 303, 409}
        held = await read(running, HELD)
        assert held == await read(running, WANTED)
        at_t1 = [row for row in held if row[1] == table_id("T1")]
        assert len(at_t1) <= 1
        _, body, _ = await running.call("GET", f"/v1/availability?date={TONIGHT}&slot=19:30")
        [free] = [t["available"] for t in body["tables"] if t["id"] == table_id("T1")]
        assert free == (not at_t1)
        for row in await read(running, "SELECT id FROM reservation WHERE source = 'partner'"):
            await running.call("DELETE", f"/v1/reservations/{row[0]}")


PLACES = """SELECT r.id, h.date, h.table_id FROM hold h
            JOIN reservation r ON r.seq = h.reservation_seq"""
OVERLAPS = """SELECT a.table_id, a.date FROM hold a JOIN hold b
              ON a.table_id = b.table_id AND a.date = b.date
                  AND a.reservation_seq < b.reservation_seq
                  AND a.starts < b.ends AND b.starts < a.ends"""


@pytest.mark.parametrize("seed", range(3))
async def test_twenty_simultaneous_changes_and_bookings_leave_one_holder_per_table(running, seed):
    draw = random.Random(seed)
    tables = [table_id(name) for name in ("T1", "T2", "T3", "T4")]
    _, made, _ = await running.call("POST", "/v1/reservations", json=a_body())

    def a_place():
        table, *more = draw.sample(tables, draw.choice((1, 1, 2)))
        return {"tableId": table, "additionalTableIds": more, "guests": 4,
                "date": draw.choice((TONIGHT, "2026-11-22")),
                "slot": draw.choice(("19:30", "22:00"))}  # fmt: skip

    changes = [
        running.call("PATCH", f"/v1/reservations/{made['serviceReservationId']}",
                     json={"idempotencyKey": f"change-{number}", **a_place()})
        for number in range(20)
    ]  # fmt: skip
    bookings = [
        running.call("POST", "/v1/reservations", json=a_body(idempotencyKey=f"b-{n}", **a_place()))
        for n in range(8)
    ]
    calls = changes + bookings
    order = draw.sample(range(len(calls)), len(calls))
    answers = dict(zip(order, await asyncio.gather(*(calls[n] for n in order)), strict=True))

    statuses = [answers[number][0] for number in range(len(calls))]
    assert set(statuses[:20]) <= {200, 409}
    assert set(statuses[20:]) <= {201, 409}
    assert await read(running, OVERLAPS) == []
    [[updated]] = await read(
        running, "SELECT count(*) FROM event WHERE type = 'reservation.updated'"
    )
    assert 0 < updated <= statuses.count(200)  # a change without effect is not announced
    _, now, _ = await running.call("GET", f"/v1/reservations/{made['serviceReservationId']}")
    held = await read(running, PLACES)
    own = sorted((date, table) for id_, date, table in held if id_ == now["id"])
    assert own == sorted((now["date"], table["id"]) for table in now["tables"])
