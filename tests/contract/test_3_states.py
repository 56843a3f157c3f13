"""States and transitions (interface, section 3)."""

import pytest

from tests.builders import TONIGHT, a_body


async def status_of(running, reservation_id):
    _, found, _ = await running.call("GET", f"/v1/reservations/{reservation_id}")
    return found["status"]


@pytest.mark.parametrize(
    ("status", "blocks"),
    [("confirmed", True), ("completed", True), ("requested", True), ("pending", True),
     ("partial", True)],
)  # fmt: skip
async def test_a_reservation_in_a_blocking_state_blocks_its_table(running, venue, status, blocks):
    reservation_id = await venue.guest_books("T1")
    await venue.put(reservation_id, status=status)

    _, seen, _ = await running.call("GET", f"/v1/availability?date={TONIGHT}&slot=19:30")
    answered, refusal, _ = await running.call("POST", "/v1/reservations", json=a_body())

    assert await status_of(running, reservation_id) == status
    assert (seen["tables"][0]["available"], seen["tables"][0]["blockedBy"]) == (False, "platform")
    assert (answered, refusal["code"]) == (409, "TABLE_TAKEN")


@pytest.mark.parametrize(("end", "status"), [("decline", "declined"), ("cancel", "cancelled")])
async def test_a_reservation_in_a_closed_state_frees_its_table(running, venue, end, status):
    reservation_id = await venue.guest_requests("T1")
    await getattr(venue, end)(reservation_id)

    _, seen, _ = await running.call("GET", f"/v1/availability?date={TONIGHT}&slot=19:30")
    answered, _, _ = await running.call("POST", "/v1/reservations", json=a_body())

    assert await status_of(running, reservation_id) == status
    assert seen["tables"][0]["available"]
    assert answered == 201


async def test_a_request_blocks_its_table_until_it_is_answered(running, venue):
    reservation_id = await venue.guest_requests("T1")
    assert await status_of(running, reservation_id) == "requested"
    assert (await running.call("POST", "/v1/reservations", json=a_body()))[0] == 409
    await venue.accept(reservation_id)
    assert await status_of(running, reservation_id) == "confirmed"


async def test_a_check_in_sets_its_time_and_leaves_the_status(running, venue):
    _, booked, _ = await running.call("POST", "/v1/reservations", json=a_body())
    running.clock.advance(60)
    await venue.let_in(booked["accessCode"])

    path = f"/v1/reservations/{booked['serviceReservationId']}"
    _, found, _ = await running.call("GET", path)
    assert (found["status"], found["checkedInAt"]) == ("confirmed", "2026-11-21T19:01:00.000Z")
