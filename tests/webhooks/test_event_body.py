"""The body of an event: the members of interface, section 2.9, and names that break parsers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import stripe

from appliance.reservations.model import Reservation
from appliance.venue.model import Venue
from appliance.webhooks.deliveries import DueDelivery
from appliance.webhooks.endpoints import Endpoint
from appliance.webhooks.payload import event_body, sign

VENUE = Venue("v1", "Riad Atlas", "riad", "active", "free", True, 24, "MAD", "UTC", "06:00", None)
ENDPOINT = Endpoint(
    "e1", "https://pos.example/", ("reservation.created",), True, 0, b"", None, None, 0, None,
    None, None, lineage="line",
)  # fmt: skip
DELIVERY = DueDelivery(1, "d1", 0, "reservation.created", "r1", 1_795_287_600_123)


def a_reservation(**changes):
    values = dict.fromkeys(Reservation.__dataclass_fields__) | {
        "id": "r1", "access_code": "SVC-7K2M", "status": "confirmed", "source": "partner",
        "table_id": "t1", "table_name": "Terrasse 1", "date": "2026-11-21", "slot": "19:30",
        "guests": 4, "customer_name": "Salma Idrissi", "created_at": 1_795_287_600_000,
        "updated_at": 1_795_287_601_000, "external_ref": "P-77",
    }  # fmt: skip
    return Reservation(**values | changes)


def test_the_members_are_those_of_section_2_9():
    body = json.loads(event_body(DELIVERY, a_reservation(checked_in_at=0), VENUE, ENDPOINT))

    assert body == {
        "id": "d1",
        "type": "reservation.created",
        "occurredAt": "2026-11-21T19:00:00.123Z",
        "data": {
            "reservation": {
                "serviceReservationId": "r1",
                "accessCode": "SVC-7K2M",
                "status": "confirmed",
                "date": "2026-11-21",
                "slot": "19:30",
                "table": {"id": "t1", "name": "Terrasse 1"},
                "guests": 4,
                "customerFirstName": "Salma",
                "source": "partner",
                "externalRef": "P-77",
                "checkedInAt": "1970-01-01T00:00:00.000Z",
                "venue": {"id": "v1", "name": "Riad Atlas"},
                "createdAt": "2026-11-21T19:00:00.000Z",
                "updatedAt": "2026-11-21T19:00:01.000Z",
            }
        },
    }


def test_without_a_reference_the_member_is_absent_and_a_freed_code_is_told_as_it_was_issued():
    reservation = a_reservation(
        external_ref=None, customer_name=None, slot=None, access_code=None, issued_code="SVC-7K2M"
    )

    data = json.loads(event_body(DELIVERY, reservation, VENUE, ENDPOINT))["data"]["reservation"]

    assert "externalRef" not in data
    assert data["slot"] is data["checkedInAt"] is None
    assert data["customerFirstName"] == ""
    assert data["accessCode"] == "SVC-7K2M"


@pytest.mark.parametrize(
    ("own_refs", "registered", "created", "told"),
    [(0, "line", "line", True), (0, "line", "other", True), (0, None, "other", True),
     (1, "line", "line", True), (1, "line", "other", False), (1, None, "other", False),
     (1, None, None, False)],
)  # fmt: skip
def test_the_reference_is_told_to_whom_the_venue_lets_have_it(own_refs, registered, created, told):
    endpoint = replace(ENDPOINT, own_refs=own_refs, lineage=registered)

    body = json.loads(event_body(DELIVERY, a_reservation(lineage=created), VENUE, endpoint))

    assert ("externalRef" in body["data"]["reservation"]) == told


def test_a_test_event_has_every_member_of_a_partner_reservation():
    real = json.loads(event_body(DELIVERY, a_reservation(), VENUE, ENDPOINT))
    sample = json.loads(
        event_body(
            replace(DELIVERY, event_type="webhook.test", reservation_id=None), None, VENUE, ENDPOINT
        )
    )

    assert sample["type"] == "webhook.test"
    assert sample["data"]["reservation"].keys() == real["data"]["reservation"].keys()
    assert sample["data"]["reservation"]["venue"] == {"id": "v1", "name": "Riad Atlas"}


VECTORS = Path(__file__).parents[1] / "vectors" / "webhook_signature.json"
CASES = json.loads(VECTORS.read_text("utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_signature_is_that_of_the_vector_and_the_library_of_stripe_accepts_it(case):
    header = sign(case["secrets"], case["t"], case["body"].encode())

    assert header == case["header"]
    for secret in case["secrets"]:
        assert stripe.WebhookSignature.verify_header(case["body"], header, secret)
