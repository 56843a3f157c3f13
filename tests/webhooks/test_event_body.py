"""The body of an event: the members of section 2.9, and names that break parsers."""

import json
from pathlib import Path

import pytest
import stripe
from msgspec.structs import replace

from appliance.clock import HOUR_MS
from appliance.outbox import EVENT_TYPES
from appliance.reservations.model import Reservation
from appliance.webhooks.deliveries import DueDelivery
from appliance.webhooks.endpoints import Endpoint
from appliance.webhooks.payload import event_body, sample_body, sign
from tests.builders import TONIGHT, VENUE_ID, table_id

ENDPOINT = Endpoint(
    "e1", "https://pos.example/", ("reservation.created",), True, 0, b"", None, None, 0, None,
    None, None, lineage="line",
)  # fmt: skip
DELIVERY = DueDelivery(1, "d1", 0, "reservation.created", "r1", 1_795_287_600_123)


def a_reservation(**changes):
    values = dict.fromkeys(Reservation.__struct_fields__) | {
        "id": "r1", "access_code": "SVC-7K2M", "status": "confirmed", "source": "partner",
        "table_id": "t1", "table_name": "Terrasse 1", "date": "2026-11-21", "slot": "19:30",
        "starts": 1170, "ends": 1320, "guests": 4, "customer_name": "Salma Idrissi",
        "created_at": 1_795_287_600_000,
        "updated_at": 1_795_287_601_000, "external_ref": "P-77",
    }  # fmt: skip
    return Reservation(**values | changes)


def body_of(box, reservation, endpoint=ENDPOINT):
    return json.loads(box.live.database.peek(event_body, DELIVERY, reservation, endpoint))


def test_the_body_has_the_members_of_section_2_9(box):
    body = body_of(box, a_reservation(checked_in_at=0))

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
                "tables": [{"id": "t1", "name": "Terrasse 1"}],
                "guests": 4,
                "customerFirstName": "Salma",
                "source": "partner",
                "createdByThisKey": False,
                "externalRef": "P-77",
                "checkedInAt": "1970-01-01T00:00:00.000Z",
                "startsAt": "2026-11-21T19:30:00.000Z",
                "endsAt": "2026-11-21T22:00:00.000Z",
                "lateAt": None,
                "noShow": False,
                "venue": {"id": VENUE_ID, "name": "Riad Atlas"},
                "createdAt": "2026-11-21T19:00:00.000Z",
                "updatedAt": "2026-11-21T19:00:01.000Z",
            }
        },
    }


def test_a_missing_reference_is_omitted_and_a_released_access_code_is_still_sent(box):
    reservation = a_reservation(
        external_ref=None, customer_name=None, slot=None, access_code=None, issued_code="SVC-7K2M"
    )

    data = body_of(box, reservation)["data"]["reservation"]

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
def test_the_reference_is_sent_only_to_endpoints_that_the_venue_allows(
    box, own_refs, registered, created, told
):
    endpoint = replace(ENDPOINT, own_refs=own_refs, lineage=registered)

    body = body_of(box, a_reservation(lineage=created), endpoint)

    assert ("externalRef" in body["data"]["reservation"]) == told


@pytest.mark.parametrize(
    ("registered", "created", "own"),
    [("line", "line", True), ("line", "other", False), ("line", None, False), (None, None, False)],
)
def test_the_body_says_whether_the_endpoints_own_lineage_created_the_reservation(
    box, registered, created, own
):
    endpoint = replace(ENDPOINT, lineage=registered)
    body = body_of(box, a_reservation(lineage=created), endpoint)
    assert body["data"]["reservation"]["createdByThisKey"] is own


def sample(box, event_type):
    delivery = replace(DELIVERY, event_type=event_type, reservation_id=None)
    return json.loads(box.live.database.peek(sample_body, delivery))["data"]["reservation"]


def test_a_test_event_looks_like_a_partner_reservation_of_this_venue(box):
    real = body_of(box, a_reservation(lineage="line", email_outcome="sent"))
    found = sample(box, "webhook.test")

    assert found.keys() == real["data"]["reservation"].keys()
    assert found["venue"] == {"id": VENUE_ID, "name": "Riad Atlas"}
    assert found["table"] == {"id": table_id("T1"), "name": "Terrasse 1"}
    assert (found["date"], found["slot"], found["guests"]) == (TONIGHT, "19:30", 2)


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_samples_alternate_between_own_and_other_reservations_by_event_type(box, event_type):
    found = sample(box, event_type)
    own = event_type in {"reservation.cancelled", "reservation.checked_in", "webhook.test"}
    assert found["source"] == ("partner" if own else "platform")
    assert found["createdByThisKey"] is own
    assert ("externalRef" in found) is own


def test_a_sample_sent_after_midnight_is_for_the_evening_in_progress(box, clock):
    delivery = replace(DELIVERY, reservation_id=None, occurred_at=clock.now() + 6 * HOUR_MS)
    body = json.loads(box.live.database.peek(sample_body, delivery))
    assert body["occurredAt"].startswith("2026-11-22T01:00")
    assert body["data"]["reservation"]["date"] == TONIGHT


async def test_a_venue_without_tables_and_slots_still_has_a_sample(box):
    def empty(tx):
        tx.execute("DELETE FROM venue_table")
        tx.execute("DELETE FROM slot")

    await box.live.database.write(empty)
    found = sample(box, "reservation.created")
    assert (found["slot"], found["table"]["name"]) == (None, "Table test")


VECTORS = Path(__file__).parents[1] / "vectors" / "webhook_signature.json"
CASES = json.loads(VECTORS.read_text("utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_signature_matches_the_vector_and_is_accepted_by_stripes_library(case):
    header = sign(case["secrets"], case["t"], case["body"].encode())

    assert header == case["header"]
    for secret in case["secrets"]:
        assert stripe.WebhookSignature.verify_header(case["body"], header, secret)
