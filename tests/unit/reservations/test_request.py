"""Parsing `POST /v1/reservations` (interface, section 2.6): the result, and what is refused."""

import pytest

from appliance.core.errors import (
    ApiError,
    CustomerContactRequired,
    CustomerNameRequired,
    IdempotencyKeyRequired,
    InvalidDate,
    InvalidEmail,
    InvalidGuests,
    InvalidSlot,
    InvalidTable,
    ValidationError,
)
from appliance.reservations.request import parse_booking
from tests.builders import a_body, table_id


def a_customer(**changes):
    return {"name": "Salma Idrissi", "phone": "+212 600 000 001", **changes}


def test_a_request_body_with_every_member_is_parsed_completely():
    booking = parse_booking(
        a_body(
            customer=a_customer(email="salma@example.com"),
            notes="près de la fontaine",
            externalRef="R-7",
            notifyCustomer=False,
        )
    )

    assert (booking.table_id, booking.date.isoformat()) == (table_id("T1"), "2026-11-21")
    assert (booking.slot, booking.guests, booking.customer_name) == ("19:30", 2, "Salma Idrissi")
    assert (booking.customer_email, booking.customer_phone) == (
        "salma@example.com", "+212 600 000 001"
    )  # fmt: skip
    assert (booking.notes, booking.external_ref) == ("près de la fontaine", "R-7")
    assert (booking.idempotency_key, booking.notify_customer) == ("booking-1", False)


def test_omitted_members_mean_the_whole_evening_no_notes_and_an_email():
    booking = parse_booking(a_body(slot=None))

    assert parse_booking({**a_body(), "slot": None, "notifyCustomer": None}) == booking
    assert (booking.slot, booking.notes, booking.external_ref) == (None, None, None)
    assert booking.notify_customer


def test_spaces_around_and_inside_a_name_are_normalised():
    assert parse_booking(a_body(customer=a_customer(name=" Salma \n Idrissi "))).customer_name == (
        "Salma Idrissi"
    )


@pytest.mark.parametrize(
    ("phone", "kept"),
    [("-", None), ("N/A", None), ("1234", "1234"), ("poste 12", "poste 12"), ("  ", None),
     ("0" * 41, None), (None, None), ("\u200b", None), ("?", None),
     (" 06 00\u00a000 00 01\n", "06 00 00 00 01"), ("٠٦٠٠٠٠٠٠٠١", "0600000001")],
)  # fmt: skip
def test_an_invalid_phone_number_is_accepted_beside_a_valid_email_address(phone, kept):
    booking = parse_booking(a_body(customer=a_customer(email=" s@example.com\t", phone=phone)))

    assert (booking.customer_email, booking.customer_phone) == ("s@example.com", kept)


@pytest.mark.parametrize("phone", ["-", "N/A", "1234", "0" * 21, "0" * 41, 612345678])
def test_without_an_email_address_a_phone_number_needs_6_to_20_digits(phone):
    with pytest.raises(ValidationError) as refused:
        parse_booking(a_body(customer=a_customer(email=" ", phone=phone)))
    assert refused.value.field == "customer.phone"


ORDER = [
    ("date", InvalidDate, {"date": "2026-11-21"}),
    ("slot", InvalidSlot, {"slot": "19:30"}),
    ("tableId", InvalidTable, {"tableId": table_id("T1")}),
    ("guests", InvalidGuests, {"guests": 2}),
    ("customer.name", CustomerNameRequired, {"customer": {"name": "S"}}),
    ("customer.email", CustomerContactRequired, {"customer": {"name": "S", "email": "x"}}),
    ("customer.email", InvalidEmail, {"customer": {"name": "n" * 201, "phone": "1"}}),
    ("idempotencyKey", IdempotencyKeyRequired, {"idempotencyKey": "k" * 121}),
    ("notes", ValidationError, {"notes": "ok"}),
    ("externalRef", ValidationError, {"externalRef": "ok"}),
    ("idempotencyKey", ValidationError, {"idempotencyKey": "ok"}),
    ("customer.name", ValidationError, {"customer": {"name": "S", "phone": "1"}}),
    ("customer.phone", ValidationError, {"customer": {"name": "S", "phone": "123456"}}),
    ("notifyCustomer", ValidationError, {"notifyCustomer": True}),
]


def test_errors_are_reported_in_the_order_of_section_7_and_then_the_others():
    body = {"slot": "x", "notes": 5, "externalRef": 5, "notifyCustomer": 1}

    for field, refusal, mending in ORDER:
        with pytest.raises(ApiError) as refused:
            parse_booking(body)
        assert (type(refused.value), refused.value.field) == (refusal, field)
        body |= mending

    assert parse_booking(body).idempotency_key == "ok"


@pytest.mark.parametrize(
    "changes",
    [
        {"tableId": table_id("T2")}, {"date": "2026-11-22"}, {"slot": "22:00"}, {"guests": 3},
        {"customer": a_customer(name="Sara")}, {"customer": a_customer(email="s@example.com")},
        {"customer": a_customer(phone="0600000002")}, {"notes": "n"}, {"externalRef": "R"},
        {"notifyCustomer": False},
    ],
)  # fmt: skip
def test_bodies_that_differ_in_any_member_have_different_fingerprints(changes: dict):
    assert parse_booking(a_body(**changes)).fingerprint() != parse_booking(a_body()).fingerprint()


def test_equivalent_bodies_in_different_spellings_have_the_same_fingerprint():
    spelled = {"unknown": 1, **a_body(tableId=table_id("T1").upper(), notes="")}

    assert parse_booking(spelled).fingerprint() == parse_booking(a_body()).fingerprint()
