"""Parse and validate booking requests (interface, section 2.6)."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from appliance.core.email_addresses import clean_email, is_email
from appliance.core.errors import (
    CustomerContactRequired,
    CustomerNameRequired,
    CustomerNotObject,
    IdempotencyKeyRequired,
    InvalidDate,
    InvalidEmail,
    InvalidGuests,
    InvalidSlot,
    InvalidTable,
    check_length,
    field_invalid,
)
from appliance.core.phone_numbers import PHONE_MAX, clean_phone, is_phone
from appliance.core.text import clean_line
from appliance.reservations.email_queue import LANGUAGES
from appliance.venue.model import is_slot, parse_date

NOTES_MAX = 500
REFERENCE_MAX = 120
NAME_MAX = 200
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Booking:
    """A validated booking request. If `slot` is None, the request is for the whole evening."""

    table_id: str
    date: date
    slot: str | None
    guests: int
    customer_name: str
    customer_email: str | None
    customer_phone: str | None
    notes: str | None = None
    external_ref: str | None = None
    idempotency_key: str | None = None
    notify_customer: bool = True
    language: str | None = None

    def fingerprint(self) -> bytes:
        """Return the SHA-256 of all fields. It shows whether a replay has a different body."""
        members = [getattr(self, name) for name in self.__slots__]
        members[1] = self.date.isoformat()
        return hashlib.sha256(repr(members).encode()).digest()


def parse_booking(body: Mapping[str, Any]) -> Booking:
    """Parse the decoded body of `POST /v1/reservations`.

    Raises the error for the first invalid field, in the order defined in
    docs/decisions/requests-and-errors.md.
    """
    day = parse_date(body.get("date"))
    if day is None:
        raise InvalidDate(field="date")
    slot = body.get("slot")
    if slot is not None and not is_slot(slot):
        raise InvalidSlot(field="slot")
    table_id = parse_uuid(body.get("tableId"))
    if table_id is None:
        raise InvalidTable(field="tableId")
    guests = body.get("guests")
    if type(guests) is not int or guests < 1:
        raise InvalidGuests(field="guests")
    name, email, phone = _parse_customer(body.get("customer"))
    key = body.get("idempotencyKey")
    if not isinstance(key, str) or not key.strip():
        raise IdempotencyKeyRequired(field="idempotencyKey")
    notes = _optional_text(body.get("notes"), "notes", NOTES_MAX)
    external_ref = _optional_text(body.get("externalRef"), "externalRef", REFERENCE_MAX)
    check_length(key, "idempotencyKey", REFERENCE_MAX)
    check_length(name, "customer.name", NAME_MAX)
    if email is None or not isinstance(phone, str):
        _check_phone(phone, "customer.phone")
    language = body["customer"].get("language")
    if language is not None and language not in LANGUAGES:
        raise field_invalid("customer.language", "fr, en or ar expected.")
    notify = body.get("notifyCustomer")
    if notify is None:
        notify = True
    if not isinstance(notify, bool):
        raise field_invalid("notifyCustomer", "true or false expected.")
    return Booking(
        table_id, day, slot, guests, name, email, phone, notes, external_ref, key, notify, language
    )


def parse_uuid(text: object) -> str | None:
    """Return a UUID in lower case, or None if `text` is not a UUID with hyphens."""
    lower = text.lower() if isinstance(text, str) else ""
    return lower if _UUID.fullmatch(lower) else None


def read_contacts(email: object, phone: object) -> tuple[Any, Any]:
    """Return both contacts cleaned, but not checked. Blank ones are None."""
    email = (clean_email(email) or None) if isinstance(email, str) else email
    phone = (clean_phone(phone) or None) if isinstance(phone, str) else phone
    return email, phone


def _parse_customer(customer: object) -> tuple[str, str | None, Any]:
    if customer is not None and not isinstance(customer, dict):
        raise CustomerNotObject(field="customer")
    members = customer or {}
    name = members.get("name")
    if not isinstance(name, str) or not is_visible(name):
        raise CustomerNameRequired(field="customer.name")
    email, phone = read_contacts(members.get("email"), members.get("phone"))
    if email is None and phone is None:
        raise CustomerContactRequired(field="customer.email")
    if email is not None and not is_email(email):
        raise InvalidEmail(field="customer.email")
    if email is not None and isinstance(phone, str) and not _is_phone_text(phone):
        phone = None  # partners' feeds are full of "-" and "N/A"
    return clean_line(name), email, phone


def _is_phone_text(phone: str) -> bool:
    """Whether `phone` is worth keeping as text, though it may be no phone number."""
    return len(phone) <= PHONE_MAX and any(c.isdecimal() for c in phone)


def is_visible(text: str) -> bool:
    """Whether `text` has any character that is not a space, control or zero-width character."""
    return any(c.isprintable() and not c.isspace() for c in text)


def check_customer(name: str | None, email: str | None, phone: str | None, prefix: str) -> None:
    """Validate the customer fields that are not None.

    `prefix` is prepended to the field names in errors. Raises CustomerNameRequired,
    InvalidEmail or ValidationError if a value is invalid.
    """
    if name is not None and not is_visible(name):
        raise CustomerNameRequired(field=f"{prefix}name")
    if email is not None and not is_email(email):
        raise InvalidEmail(field=f"{prefix}email")
    _check_phone(phone, f"{prefix}phone")
    check_length(name or "", f"{prefix}name", NAME_MAX)


def _check_phone(phone: object, field: str) -> None:
    """Raise ValidationError for `field` unless `phone` is None or a phone number."""
    if phone is not None and not (isinstance(phone, str) and is_phone(phone)):
        raise field_invalid(
            field, "6 to 20 digits expected, in at most {longest} characters.", longest=PHONE_MAX
        )


def _optional_text(value: Any, field: str, longest: int) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise field_invalid(field, "text expected.")
    check_length(value, field, longest)
    return value or None
