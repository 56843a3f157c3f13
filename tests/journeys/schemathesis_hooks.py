"""Hooks for schemathesis: a check, and meaningful values for random requests.

Without them, nearly every booking has an unknown table, a past date and the idempotency key of an
earlier one, and webhooks go to random hosts.
"""

import itertools
import json
import os
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

import schemathesis

from tests.app.api.closed import close_answers

RECEIVER = "https://127.0.0.1:9009/hook"  # no server listens there
SLOTS = ("19:30", "22:00")
CAPACITY = 6
# Refusals that the schema cannot express: dates, slots, capacities, webhook targets, blank names.
# Also rules that it leaves to the description, because they hinder client generators: the form of
# an email address or a phone number, and that one of both is required.
BEYOND_A_SCHEMA = {
    "getAvailability": {"INVALID_DATE", "INVALID_SLOT"},
    "listReservations": {"INVALID_DATE"},
    "createReservation": {
        "INVALID_DATE",
        "INVALID_SLOT",
        "GUESTS_OUT_OF_RANGE",
        "CUSTOMER_NAME_REQUIRED",
        "CUSTOMER_CONTACT_REQUIRED",
        "INVALID_EMAIL",
    },
    "createWebhook": {"INVALID_WEBHOOK_URL"},
    "changeWebhook": {"INVALID_WEBHOOK_URL"},
    "getAvailabilityRange": {"INVALID_DATE"},
    "createHold": {"INVALID_DATE", "INVALID_SLOT", "GUESTS_OUT_OF_RANGE"},
}
BEYOND_A_SCHEMA["changeReservation"] = BEYOND_A_SCHEMA["createReservation"]
calls = itertools.count()


@schemathesis.check
def a_well_formed_request_is_refused_only_for_what_no_schema_can_say(_context, response, case):
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code != 400:
        return
    operation = case.operation.definition.raw["operationId"]
    code, field = response.json()["code"], response.json().get("field")
    if field in {"customer.phone", "holdId"}:  # only the box knows what is held
        return
    allowed = BEYOND_A_SCHEMA.get(operation, set()) | spellings(case, response.request.body)
    assert code in allowed, f"{operation} answered {code}"


def spellings(case, sent):
    """Return the codes for values that only the schema accepts: NUL, 4.0 guests, types in live."""
    codes = set()
    if sent and b"\\u0000" in (sent if isinstance(sent, bytes) else sent.encode()):
        codes.add("INVALID_JSON")
    if isinstance(case.body, dict) and isinstance(case.body.get("guests"), float):
        codes.add("INVALID_GUESTS")
    if isinstance(case.body, dict) and isinstance(case.body.get("seconds"), float):
        codes.add("VALIDATION_ERROR")
    if isinstance(case.query, dict) and isinstance(case.query.get("after"), str):
        codes.add("VALIDATION_ERROR")  # only the box knows its cursors
    if isinstance(case.body, dict) and {"since", "until"} <= case.body.keys():
        codes.add("VALIDATION_ERROR")  # a time before another
    if isinstance(case.body, dict) and "type" in case.body:
        codes.add("VALIDATION_ERROR")
    return codes


@schemathesis.hook
def before_load_schema(_context, raw_schema):
    """Fail on answers with members that the OpenAPI document lacks."""
    raw_schema["components"]["schemas"] = close_answers(raw_schema["components"]["schemas"])


@schemathesis.hook
def before_call(_context, case, _kwargs):
    """Replace well-formed ids by existing ones, except in every seventh call."""
    number = next(calls)
    if isinstance(case.body, dict):
        swap(case.body, "url", is_web_address, RECEIVER)
    if number % 7 == 0:
        return
    slot = SLOTS[number % 2]
    day = str(datetime.now(UTC).date() + timedelta(days=1 + number % 700))
    if isinstance(case.body, dict):
        swap(case.body, "tableId", is_uuid, tables()[number % len(tables())])
        if isinstance(case.body.get("tableIds"), list):
            swap(case.body, "tableIds", bool, [tables()[number % len(tables())]])
        swap(case.body, "date", is_date, day)
        swap(case.body, "slot", is_slot, slot)
        case.body.pop("holdId", None)  # one that holds other tables is refused
        swap(case.body, "guests", is_count, 1 + number % CAPACITY)
        swap(case.body, "idempotencyKey", is_key, f"key-{number}")
        if isinstance(case.body.get("customer"), dict):
            swap(case.body["customer"], "email", is_written, "salma@example.com")
            swap(case.body["customer"], "phone", is_written, "+212 600 000 001")
    swap(case.query, "date", is_date, day)
    swap(case.query, "slot", is_slot, slot)


def swap(members, name, is_well_formed, value):
    if members and name in members and is_well_formed(members[name]):
        members[name] = value


def tables():
    return json.loads(os.environ["TABLES"])


def is_web_address(text):
    try:
        return urlsplit(text).scheme in {"http", "https"} and len(text) <= 2048
    except (AttributeError, TypeError, ValueError):
        return False


def is_uuid(text):
    try:
        return str(UUID(text)) == text.lower()
    except (AttributeError, TypeError, ValueError):
        return False


def is_date(text):
    try:
        return str(date.fromisoformat(text)) == text
    except (TypeError, ValueError):
        return False


def is_slot(text):
    try:
        return datetime.strptime(text, "%H:%M").strftime("%H:%M") == text  # noqa: DTZ007
    except (TypeError, ValueError):
        return False


def is_count(value):
    return type(value) is int and value >= 1


def is_written(text):
    return isinstance(text, str) and 0 < len(text) <= 254


def is_key(text):
    return isinstance(text, str) and bool(text.strip()) and len(text) <= 120
