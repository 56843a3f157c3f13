"""Walk-ins: parties that are seated without a reservation."""

import asyncio

import pytest

from tests.app.portal.people import a_person
from tests.app.portal.seating import rows, seat
from tests.builders import TONIGHT, table_id

SEAT = "/portal/tonight/walk-in"
FOUND = """SELECT source, status, guests, arrived, walk_in, checked_in_at IS NOT NULL, slot
           FROM reservation"""


def a_party(**changes):
    return {"table": table_id("T1"), "slot": "19:30", "guests": "3", "token": "f" * 20, **changes}


async def test_a_walk_in_is_booked_and_checked_in_once_per_form(running, host):
    answers = await asyncio.gather(*(host.post(SEAT, a_party()) for _ in range(3)))

    assert {status for status, _, _ in answers} == {303}
    assert await rows(running, FOUND) == [("manual", "confirmed", 3, 3, 1, 1, "19:30")]
    assert [row[0] for row in await rows(running, "SELECT type FROM event ORDER BY seq")] == [
        "reservation.created", "reservation.checked_in",
    ]  # fmt: skip
    assert await rows(running, "SELECT admitted FROM scan_log") == [(3,)]
    assert await rows(running, "SELECT 1 FROM email") == []
    _, board, _ = await host.get("/portal/tonight")
    assert "Walk-in" in board


async def test_seating_more_guests_than_a_table_seats_needs_confirmation(running, host):
    status, page, _ = await host.post(SEAT, a_party(guests="6"))
    assert status == 400
    assert 'name="sure" value="6"' in page
    assert await rows(running, FOUND) == []

    assert (await host.post(SEAT, a_party(guests="6", sure="6")))[0] == 303
    assert (await rows(running, FOUND))[0][2:4] == (6, 6)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"slot": "22:00"}, 400),
        ({"table": "x"}, 404),
        ({"guests": "0"}, 400),
        ({"guests": ""}, 400),
    ],
)
async def test_a_walk_in_is_refused_without_a_free_table_or_outside_opening_hours(
    running, host, changes, status
):
    assert (await host.post(SEAT, a_party(**changes)))[0] == status
    assert await rows(running, FOUND) == []
    assert await rows(running, "SELECT 1 FROM event") == []


async def test_the_drawer_refuses_an_occupied_table_too(running, host):
    await seat(running)

    status, page, _ = await host.post(SEAT, a_party(part="1"))

    assert status == 409
    assert "<html" not in page
    assert "already taken" in page


async def test_party_sizes_are_offered_only_at_a_free_table_tonight(running, host):
    new = f"/portal/reservations/new?table={table_id('T1')}"
    await seat(running, table="T2", access_code=None)
    for query, is_offered in (
        (f"&date={TONIGHT}&slot=19:30", True),
        (f"&date={TONIGHT}&slot=22:00", False),  # not yet: three hours ahead
        ("&date=2026-11-22&slot=19:30", False),
    ):
        _, page, _ = await host.get(new + query)
        assert (SEAT in page) == is_offered, query
    _, page, _ = await host.get(new.replace(table_id("T1"), table_id("T2")) + "&slot=19:30")
    assert SEAT not in page


async def test_door_staff_cannot_book_a_table(running):
    person = await a_person(running, "door", "Karim")
    assert (await person.post(SEAT, a_party()))[0] == 403
