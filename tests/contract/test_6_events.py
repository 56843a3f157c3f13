"""Events and their delivery (interface, sections 2.9 and 6), as a receiver sees them."""

import hashlib
import hmac

import pytest

from tests.builders import TONIGHT, VENUE_ID, a_body, table_id
from tests.conftest import with_settings
from tests.contract.calls import registered

OURS = {"source": "partner", "externalRef": "R-7"}


@pytest.fixture
def settings():
    return with_settings(
        api={"rate_limit_per_minute": 1000},
        webhooks={"allow_networks": ("127.0.0.0/8",), "allow_http": True},
    )


async def test_the_headers_contain_type_delivery_and_a_signature_of_the_raw_body(running, receiver):
    endpoint = await registered(running, url=receiver.url)
    await running.call("POST", "/v1/reservations", json=a_body())
    [request] = await receiver.got(1)

    time, _, signature = request.headers["x-service-signature"].partition(",")
    signed = f"{time.removeprefix('t=')}.".encode() + request.raw
    expected = hmac.new(endpoint["secret"].encode(), signed, hashlib.sha256).hexdigest()
    assert signature == f"v1={expected}"
    assert request.line.startswith("POST ")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-service-event"] == request.body["type"] == "reservation.created"
    assert request.headers["x-service-delivery"] == request.body["id"]
    assert request.headers["x-service-environment"] == "live"
    assert request.headers["x-service-attempt"] == "1"


async def test_the_body_has_the_documented_members(running, receiver):
    await registered(running, url=receiver.url)
    _, booked, _ = await running.call("POST", "/v1/reservations", json=a_body(externalRef="R-7"))
    [request] = await receiver.got(1)

    assert set(request.body) == {"id", "type", "occurredAt", "data"}
    assert request.body["occurredAt"] == "2026-11-21T19:00:00.000Z"
    expected = {
        "serviceReservationId": booked["serviceReservationId"],
        "accessCode": booked["accessCode"],
        "status": "confirmed", "date": TONIGHT, "slot": "19:30",
        "table": {"id": table_id("T1"), "name": "Terrasse 1"},
        "guests": 2, "customerFirstName": "Salma", **OURS, "checkedInAt": None,
        "venue": {"id": VENUE_ID, "name": "Riad Atlas"},
    }  # fmt: skip
    assert expected.items() <= request.reservation.items()


async def cancel_as_partner(running, venue):
    _, booked, _ = await running.call("POST", "/v1/reservations", json=a_body())
    await running.call("DELETE", f"/v1/reservations/{booked['serviceReservationId']}")


async def be_let_in(running, venue):
    _, booked, _ = await running.call("POST", "/v1/reservations", json=a_body())
    await venue.let_in(booked["accessCode"])


async def be_accepted(running, venue):
    await venue.accept(await venue.guest_requests("T1"))


async def be_declined(running, venue):
    await venue.decline(await venue.guest_requests("T1"))


async def cancel_as_staff(running, venue):
    await venue.cancel(await venue.staff_book("T1"))


@pytest.mark.parametrize(
    ("story", "types", "status"),
    [(cancel_as_partner, ["reservation.created", "reservation.cancelled"], "cancelled"),
     (cancel_as_staff, ["reservation.created", "reservation.cancelled"], "cancelled"),
     (be_let_in, ["reservation.created", "reservation.checked_in"], "confirmed"),
     (be_accepted, ["reservation.created", "reservation.confirmed"], "confirmed"),
     (be_declined, ["reservation.created", "reservation.declined"], "declined")],
    ids=lambda each: getattr(each, "__name__", None),
)  # fmt: skip
async def test_each_change_is_sent_with_the_state_of_the_reservation_at_that_moment(
    running, venue, receiver, story, types, status
):
    await registered(running, url=receiver.url)
    await story(running, venue)
    requests = await receiver.got(2)

    assert [request.body["type"] for request in requests] == types
    assert requests[-1].reservation["status"] == status
    assert (requests[-1].reservation["checkedInAt"] is None) == (story is not be_let_in)


async def test_an_endpoint_gets_only_the_events_that_it_subscribed_to(running, receiver):
    await registered(running, url=receiver.url, events=["reservation.cancelled"])
    _, booked, _ = await running.call("POST", "/v1/reservations", json=a_body())
    await running.call("DELETE", f"/v1/reservations/{booked['serviceReservationId']}")

    [request] = await receiver.got(1)

    assert request.body["type"] == "reservation.cancelled"
