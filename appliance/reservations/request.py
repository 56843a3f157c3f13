"""Parse and validate booking requests (interface, section 2.6)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from msgspec import Struct

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
    TablesRequired,
    check_length,
    field_invalid,
)
from appliance.core.phone_numbers import PHONE_MAX, clean_phone, is_phone
from appliance.core.text import clean_line
from appliance.reservations.holds import HOLD_SECONDS_MAX, Place
from appliance.reservations.model import LANGUAGES
from appliance.venue.model import is_slot, parse_date

NOTES_MAX = 500
REFERENCE_MAX = 120
NAME_MAX = 200
GROUP_MAX = 20  # maximum number of a group's tables besides the first
CHANGE_MEMBERS = (
    "date", "slot", "tableId", "additionalTableIds", "guests", "customer", "notes", "externalRef",
    "notifyCustomer", "idempotencyKey", "ifUpdatedAt",
)  # fmt: skip
HOLD_MEMBERS = ("tableIds", "date", "slot", "guests", "seconds")
_NAME_SHOWN = 40
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Booking(Struct, frozen=True):
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
    more_table_ids: tuple[str, ...] = ()
    hold_id: str | None = None

    @property
    def place(self) -> Place:
        """The tables, the evening, the slot and the party."""
        return Place((self.table_id, *self.more_table_ids), self.date, self.slot, self.guests)

    def fingerprint(self) -> bytes:
        """Return the SHA-256 of all fields. It shows whether a replay has a different body."""
        members = [getattr(self, name) for name in self.__struct_fields__]
        members[1] = self.date.isoformat()
        return hashlib.sha256(repr(members).encode()).digest()


def parse_booking(body: Mapping[str, Any]) -> Booking:
    """Parse the decoded body of `POST /v1/reservations`.

    Raises the error for the first invalid field, in the order defined in
    docs/decisions/requests-and-errors.md.
    """
    day, slot = _parse_day(body.get("date")), _parse_slot(body.get("slot"))
    table_id, guests = _parse_table(body.get("tableId")), _parse_guests(body.get("guests"))
    name, email, phone = _parse_customer(body.get("customer"))
    key = _parse_key(body.get("idempotencyKey"))
    notes = _optional_text(body.get("notes"), "notes", NOTES_MAX)
    external_ref = _optional_text(body.get("externalRef"), "externalRef", REFERENCE_MAX)
    check_length(key, "idempotencyKey", REFERENCE_MAX)
    language = _check_rest(body["customer"], name, email, phone)
    notify = _parse_notify(body)
    more, hold_id = parse_more_tables(body.get("additionalTableIds")), body.get("holdId")
    check_different((table_id, *more))
    if hold_id is not None and parse_uuid(hold_id) is None:
        raise field_invalid("holdId", "a UUID expected.")
    return Booking(
        table_id, day, slot, guests, name, email, phone, notes, external_ref, key,
        notify is not False, language, more, parse_uuid(hold_id),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A validated request to change a reservation.

    `wanted` has what `change_reservation` takes, except that `table_id` and `more_table_ids` stand
    for `table_ids`. If `notify` is None, the partner does not say whether to write to the customer.
    """

    wanted: Mapping[str, Any]
    idempotency_key: str
    notify: bool | None

    def fingerprint(self) -> bytes:
        """Return the SHA-256 of the request. It shows whether a replay has a different body."""
        return hashlib.sha256(repr((sorted(self.wanted.items()), self.notify)).encode()).digest()


def parse_change(body: Mapping[str, Any]) -> ChangeRequest:
    """Parse the decoded body of `PATCH /v1/reservations/{id}`, with the checks of a creation.

    Absent members stay as they are. `slot`, `notes`, `externalRef` and `additionalTableIds` may be
    null. Raises the error for the first invalid field, and ValidationError for an unknown member.
    """
    wanted: dict[str, Any] = {}
    for member, name, parse in (
        ("date", "date", _parse_day),
        ("slot", "slot", _parse_slot),
        ("tableId", "table_id", _parse_table),
        ("guests", "guests", _parse_guests),
    ):
        if member in body:
            wanted[name] = parse(body[member])
    if "customer" in body:
        name, email, phone = _parse_customer(body["customer"])
        wanted |= {"customer_name": name, "customer_email": email, "customer_phone": phone}
    key = _parse_key(body.get("idempotencyKey"))
    for member, name, longest in (
        ("notes", "notes", NOTES_MAX),
        ("externalRef", "external_ref", REFERENCE_MAX),
    ):
        if member in body:
            wanted[name] = _optional_text(body[member], member, longest)
    check_length(key, "idempotencyKey", REFERENCE_MAX)
    if "customer" in body:
        language = _check_rest(body["customer"], name, email, phone)
        wanted |= {"language": language} if language else {}
    notify = _parse_notify(body)
    if "additionalTableIds" in body:
        wanted["more_table_ids"] = parse_more_tables(body["additionalTableIds"])
    check_members(body, CHANGE_MEMBERS)
    return ChangeRequest(wanted, key, notify)


def parse_hold(body: Mapping[str, Any]) -> tuple[Place, int]:
    """Parse the decoded body of `POST /v1/holds` into the place and the seconds to hold it.

    Raises the error for the first invalid field, and ValidationError for an unknown member.
    """
    day, slot = _parse_day(body.get("date")), _parse_slot(body.get("slot"))
    table_ids = parse_more_tables(body.get("tableIds"), "tableIds", GROUP_MAX + 1)
    guests, seconds = _parse_guests(body.get("guests")), body.get("seconds")
    if not table_ids:
        raise TablesRequired(field="tableIds", largest=GROUP_MAX + 1)
    check_different(table_ids, "tableIds")
    if type(seconds) is not int or not 1 <= seconds <= HOLD_SECONDS_MAX:
        raise field_invalid(
            "seconds", "a whole number from 1 to {largest}.", largest=HOLD_SECONDS_MAX
        )
    check_members(body, HOLD_MEMBERS)
    return Place(table_ids, day, slot, guests), seconds


def check_members(body: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """Raise ValidationError for a member that is not in `allowed`.

    A misspelt member must not be ignored where a body changes or sends something.
    """
    for name in body:
        if not allowed:
            raise field_invalid(name[:_NAME_SHOWN], "unknown member; send no body.")
        if name not in allowed:
            raise field_invalid(
                name[:_NAME_SHOWN], "unknown member; expected: {allowed}.",
                allowed=", ".join(allowed),
            )  # fmt: skip


def _parse_day(value: object) -> date:
    day = parse_date(value)
    if day is None:
        raise InvalidDate(field="date")
    return day


def _parse_slot(value: Any) -> str | None:
    if value is not None and not is_slot(value):
        raise InvalidSlot(field="slot")
    slot: str | None = value
    return slot


def _parse_table(value: object, field: str = "tableId") -> str:
    table_id = parse_uuid(value)
    if table_id is None:
        raise InvalidTable(field=field)
    return table_id


def parse_more_tables(
    value: object, field: str = "additionalTableIds", largest: int = GROUP_MAX
) -> tuple[str, ...]:
    """Return the table ids in a list. Raises ValidationError or InvalidTable for anything else."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > largest:
        raise field_invalid(field, "a list of at most {largest} table ids.", largest=largest)
    return tuple(_parse_table(each, f"{field}[{n}]") for n, each in enumerate(value))


def check_different(table_ids: Sequence[str], field: str = "additionalTableIds") -> None:
    """Raise ValidationError for `field` if a table is named twice."""
    if len(set(table_ids)) < len(table_ids):
        raise field_invalid(field, "a table is named twice; name each table once.")


def _parse_guests(value: object) -> int:
    if type(value) is not int or value < 1:
        raise InvalidGuests(field="guests")
    return value


def _parse_key(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise IdempotencyKeyRequired(field="idempotencyKey")
    return value


def _parse_notify(body: Mapping[str, Any]) -> bool | None:
    notify = body.get("notifyCustomer")
    if notify is not None and not isinstance(notify, bool):
        raise field_invalid("notifyCustomer", "true or false expected.")
    return notify


def _check_rest(
    customer: Mapping[str, Any], name: str, email: str | None, phone: Any
) -> str | None:
    """Check what has no error code of its own, and return the customer's language."""
    check_length(name, "customer.name", NAME_MAX)
    if email is None or not isinstance(phone, str):
        _check_phone(phone, "customer.phone")
    language: str | None = customer.get("language")
    if language is not None and language not in LANGUAGES:
        raise field_invalid("customer.language", "fr, en or ar expected.")
    return language


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
