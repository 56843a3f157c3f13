"""Cancelling: interface, sections 3 and 4, rule 3."""

import pytest

from tests.builders import a_body
from tests.conftest import Running


async def create(running: Running, **changes):
    return await running.call("POST", "/v1/reservations", json=a_body(**changes))


async def test_cancelling_twice_frees_the_table_and_announces_it_once(running, venue):
    _, first, _ = await create(running)
    path = f"/v1/reservations/{first['serviceReservationId']}"

    answers = []
    for _ in range(2):
        answers.append((await running.call("DELETE", path))[:2])
        running.clock.advance(60)

    once = {
        "serviceReservationId": first["serviceReservationId"],
        "status": "cancelled",
        "cancelledAt": "2026-11-21T19:00:00.000Z",
    }
    assert answers == [(200, once), (200, {**once, "alreadyCancelled": True})]
    assert (await venue.events()).count("reservation.cancelled") == 1
    assert (await create(running, idempotencyKey="again"))[0] == 201


async def test_a_replay_of_a_cancelled_reservation_has_a_header_that_says_so(running):
    _, first, headers = await create(running)
    assert "Reservation-Status" not in headers
    _, _, headers = await create(running)
    assert headers["Reservation-Status"] == "confirmed"
    await running.call("DELETE", f"/v1/reservations/{first['serviceReservationId']}")

    status, again, headers = await create(running)

    assert (status, again) == (200, first)
    assert headers["Reservation-Status"] == "cancelled"


@pytest.mark.parametrize(
    ("query", "letters"),
    [("", {"confirmation", "cancelled"}), ("?notifyCustomer=true", {"confirmation", "cancelled"}),
     ("?notifyCustomer=false", {"confirmation"})],
)  # fmt: skip
async def test_a_cancellation_is_emailed_to_the_customer_unless_the_partner_declines(
    running, sandbox, query, letters
):
    customer = {"name": "Salma Idrissi", "email": "salma@example.com"}
    _, first, _ = await running.call(
        "POST", "/test/v1/reservations", json=a_body(customer=customer)
    )

    status, _, _ = await running.call(
        "DELETE", f"/test/v1/reservations/{first['serviceReservationId']}{query}"
    )

    assert status == 200
    assert {kind for kind, _ in await sandbox.emails()} == letters


@pytest.mark.parametrize("query", [
    "notifyCustomer=", "notifyCustomer=no", "notifyCustomer=False",
    "notifyCustomer=true&notifyCustomer=false", "notify=false",
])  # fmt: skip
async def test_an_unknown_parameter_is_refused_and_nothing_is_cancelled(running, query):
    _, first, _ = await create(running)

    status, body, _ = await running.call(
        "DELETE", f"/v1/reservations/{first['serviceReservationId']}?{query}"
    )

    field = query.partition("=")[0]
    assert (status, body["code"], body["field"]) == (400, "VALIDATION_ERROR", field)
    _, listed, _ = await running.call("GET", "/v1/reservations")
    assert listed["items"][0]["status"] == "confirmed"


async def test_a_checked_in_reservation_can_be_cancelled_and_keeps_its_check_in(running, venue):
    _, first, _ = await create(running)
    await venue.put(first["serviceReservationId"], checked_in_at=1_795_287_600_000)

    await running.call("DELETE", f"/v1/reservations/{first['serviceReservationId']}")

    _, listed, _ = await running.call("GET", "/v1/reservations")
    assert listed["items"][0]["status"] == "cancelled"
    assert listed["items"][0]["checkedInAt"] == "2026-11-21T19:00:00.000Z"


@pytest.mark.parametrize("path_id", ["no-uuid", "2f1c8d5e-0000-4000-8000-000000000000", "%00", "'"])
async def test_cancelling_an_unknown_reservation_is_not_found(running, path_id):
    status, body, _ = await running.call("DELETE", f"/v1/reservations/{path_id}")
    assert (status, body["code"]) == (404, "NOT_FOUND")


async def test_another_partners_reservation_is_indistinguishable_from_a_missing_one(running, venue):
    _, first, _ = await create(running)
    other = await venue.issue_key()

    _, theirs, _ = await running.call(
        "DELETE", f"/v1/reservations/{first['serviceReservationId']}", key=other
    )
    _, nobodys, _ = await running.call(
        "DELETE", "/v1/reservations/2f1c8d5e-0000-4000-8000-000000000000", key=other
    )

    assert theirs == nobodys
    _, listed, _ = await running.call("GET", "/v1/reservations")
    assert listed["items"][0]["status"] == "confirmed"


async def test_platform_and_manual_reservations_cannot_be_cancelled_through_the_interface(
    running, venue
):
    for reservation_id in (await venue.guest_books("T2"), await venue.staff_book("T3")):
        status, body, _ = await running.call("DELETE", f"/v1/reservations/{reservation_id}")
        assert (status, body["code"]) == (404, "NOT_FOUND")
