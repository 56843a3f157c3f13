"""Validate the venue, its tables and slots, and parse the venue file (TOML).

The venue file and all edits in the portal use the same rules: `check_venue`, `check_table` and
`check_slot`.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, TypeVar

from appliance.clock import ZoneDatabase
from appliance.core.edited_files import parse_edited
from appliance.core.email_addresses import is_email
from appliance.core.errors import (
    OperatorError,
    ValidationError,
    field_invalid,
    not_among,
    raise_faults,
    too_long,
)
from appliance.core.i18n import is_currency
from appliance.core.phone_numbers import PHONE_MAX, is_phone
from appliance.core.text import fold
from appliance.venue.model import DAY_MINUTES, Slot, Table, Venue, interval, is_slot, minutes

STATUSES = ("active", "inactive", "suspended")
MODES = ("free", "prepaid")
NAMES_AT_DOOR = ("given", "initial", "whole")
HOURS_MAX = 24 * 365
# The venue's rules that are numbers, with the smallest and the largest value.
RULES = {
    "cancel_hours": (0, 720),
    "reminder_hours": (0, 720),
    "early_minutes": (0, 24 * 60),
    "payment_hours": (0, 8760),
    "contact_days": (1, 36_500),  # more days would overflow a date
}
PEOPLE_MAX = 100_000
ADDRESS_MAX = 200
CAPACITY_MAX = 1000
SPEND_MAX = 10**9
_LABEL_MAX = 40
NAME_MAX = 100
_VENUE_NAME_MAX = 200
_LATEST_END = 12 * 60
_MAP_URL = re.compile(r"https://[^\s\"'<>]{4,490}")
_PHONE = re.compile(r"\+?(?:[ ().-]{0,3}[0-9])+")
_SLUG_MAX = 63  # the box is announced as <slug>.local, and a label holds 63 characters
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# Excludes `..`, because the time zone's name becomes part of a file path.
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
_WEEK = frozenset(range(7))
_FILE_NAMES = {"days": "days_of_week"}  # maps a field's name in errors to its name in the file
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VenueFile(Venue):
    """A valid venue file. All ids are empty, because the file does not contain ids."""

    tables: tuple[Table, ...] = ()
    slots: tuple[Slot, ...] = ()


# Defaults for fields that the file omits
_TABLE: dict[str, Any] = {
    "id": "", "name": "", "capacity_min": 1, "minimum_spend": 0, "type": "standard",
    "bookable": True,
}  # fmt: skip
_SLOT: dict[str, Any] = {"id": "", "name": "", "days_of_week": [*range(7)]}
_VENUE: dict[str, Any] = {
    "id": "", "status": "active", "reservation_mode": "free", "auto_confirm": True,
    "request_expiry_hours": 24, "currency": "MAD", "time_zone": "Africa/Casablanca",
    "evening_ends_at": "06:00", "policies": None,
}  # fmt: skip
# The placeholder for the venue until the box is set up
UNFURNISHED = VenueFile(**{**_VENUE, "name": "venuebox", "slug": "venuebox", "status": "inactive"})


def check_venue(venue: Venue, zones: ZoneDatabase) -> None:
    """Raise ValidationError if fields of a venue are invalid."""
    raise_faults(_venue_faults(venue, zones))


def _venue_faults(venue: Venue, zones: ZoneDatabase) -> Iterator[ValidationError]:
    ends, phone, map_url = venue.evening_ends_at, venue.phone, venue.map_url
    for is_valid, fault in (
        (venue.name.strip(), field_invalid("name", "please give a name.")),
        (len(venue.name) <= _VENUE_NAME_MAX, too_long("name", _VENUE_NAME_MAX)),
        (len(venue.slug) <= _SLUG_MAX and _SLUG.fullmatch(venue.slug),
         field_invalid("slug", "please give lower-case letters without accents and digits, joined "
                       "by hyphens, such as riad-atlas.")),
        (venue.status in STATUSES, not_among("status", STATUSES)),
        (venue.reservation_mode in MODES, not_among("reservation_mode", MODES)),
        (1 <= venue.request_expiry_hours <= HOURS_MAX,
         field_invalid("request_expiry_hours", "1 to {longest} hours.", longest=HOURS_MAX)),
        (is_currency(venue.currency),
         field_invalid("currency", "please give the code of a current currency, such as MAD or "
                       "EUR.")),
        (is_slot(ends) and minutes(ends) <= _LATEST_END,
         field_invalid("evening_ends_at", "a time from 00:00 to 12:00.")),
        (len(venue.address or "") <= ADDRESS_MAX, too_long("address", ADDRESS_MAX)),
        (map_url is None or _MAP_URL.fullmatch(map_url),
         field_invalid("map_url", "an address that begins with https://.")),
        (phone is None or _is_number(phone),
         field_invalid("phone", "6 to 20 digits expected, in at most {longest} characters.",
                       longest=PHONE_MAX)),
        (venue.house_email is None or is_email(venue.house_email),
         field_invalid("house_email", "please give an email address.")),
        (venue.names_at_door in NAMES_AT_DOOR,
         field_invalid("names_at_door", "please give an allowed value.")),
        (_is_zone(venue.time_zone, zones),
         field_invalid("time_zone", "please give a name from the list, such as "
                       "Africa/Casablanca.")),
    ):  # fmt: skip
        if not is_valid:
            yield fault
    for name, (smallest, largest) in RULES.items():
        yield from _number_faults(name, getattr(venue, name), smallest, largest)
    if venue.capacity is not None:
        yield from _number_faults("capacity", venue.capacity, 1, PEOPLE_MAX)


def _number_faults(name: str, value: int, smallest: int, largest: int) -> Iterator[ValidationError]:
    if not smallest <= value <= largest:
        yield field_invalid(
            name,
            "please give a whole number from {smallest} to {largest}.",
            smallest=smallest,
            largest=largest,
        )


def _is_number(phone: str) -> bool:
    return is_phone(phone) and _PHONE.fullmatch(fold(phone).strip()) is not None


def _is_zone(name: str, zones: ZoneDatabase) -> bool:
    try:
        return bool(_ZONE.fullmatch(name) and zones.zone(name))
    except OperatorError:
        return False


def check_table(table: Table, taken: Collection[str]) -> None:
    """Raise ValidationError if fields of a table are invalid.

    `taken` contains the numbers of the other tables, which must not be used again.
    """
    raise_faults(_table_faults(table, taken))


def _table_faults(table: Table, taken: Collection[str]) -> Iterator[ValidationError]:
    if fold(table.number) in map(fold, taken):
        yield field_invalid("number", "another table has the number {number}.", number=table.number)
    for name, longest in (("number", _LABEL_MAX), ("name", NAME_MAX), ("type", _LABEL_MAX)):
        value = getattr(table, name)
        if not value.strip():
            yield field_invalid(name, "a number, a name and a type are required.")
        if len(value) > longest:
            yield too_long(name, longest)
    for name, value, smallest, largest in (
        ("capacity_min", table.capacity_min, 1, CAPACITY_MAX),
        ("capacity_max", table.capacity_max, 1, CAPACITY_MAX),
        ("minimum_spend", table.minimum_spend, 0, SPEND_MAX),
    ):
        yield from _number_faults(name, value, smallest, largest)
    if 1 <= table.capacity_max < table.capacity_min:
        yield field_invalid("capacity_max", "the maximum must not be below the minimum.")


def check_slot(slot: Slot, others: Iterable[Slot]) -> None:
    """Raise ValidationError if fields of a slot are invalid.

    The slot must not start at the same time as any of the `others` on the same weekday.
    """
    raise_faults(_slot_faults(slot, others))


def _slot_faults(slot: Slot, others: Iterable[Slot]) -> Iterator[ValidationError]:
    for name, value in (("start", slot.start), ("end", slot.end)):
        if not is_slot(value):
            yield field_invalid(name, "a time such as 19:30.")
    if slot.end == slot.start:
        yield field_invalid("end", "the end must differ from the start.")
    if len(slot.name) > NAME_MAX:
        yield too_long("name", NAME_MAX)
    days = set(slot.days_of_week)
    if not days or not days <= _WEEK or len(days) < len(slot.days_of_week):
        yield field_invalid("days", "at least one day.")
    for other in others:
        if other.start == slot.start and days & set(other.days_of_week):
            yield field_invalid(
                "start",
                "“{name}” already starts at {start} on one of these days.",
                name=other.name,
                start=slot.start,
            )


def check_evenings(
    slots: Sequence[Slot], evening_ends_at: str, field: str, changed: Slot | None = None
) -> None:
    """Raise ValidationError for `field` if a slot runs into a slot of the next evening.

    Reservations of two evenings are not compared, so their table could be booked twice. If
    `changed` is given, it must be one of the two: older versions allowed such slots.
    """
    for slot in slots:
        ends = interval(slot, evening_ends_at)[1] - DAY_MINUTES
        next_days = {(day + 1) % 7 for day in slot.days_of_week}
        for other in slots:
            starts = interval(other, evening_ends_at)[0]
            is_checked = changed is None or changed in {slot, other}
            if is_checked and starts < ends and next_days & set(other.days_of_week):
                raise field_invalid(
                    field,
                    "“{name}” runs into “{other}” of the next day, so a table could be sold twice.",
                    name=slot.name,
                    other=other.name,
                )


def parse_venue_file(text: str, zones: ZoneDatabase) -> VenueFile:
    """Parse the text of a venue file.

    If a field is invalid, raises an OperatorError that names the field, its value and the rule.
    """
    document = parse_edited(text, "the venue file")
    tables: list[Table] = []
    for path, members in _entries(document, "tables"):
        table = _read(Table, path, {"name": members.get("number"), **members}, **_TABLE)
        with _naming_field(path, members):
            check_table(table, {other.number for other in tables})
        tables.append(table)
    slots: list[Slot] = []
    for path, members in _entries(document, "slots"):
        slot = _read(Slot, path, members, **_SLOT)
        slot = replace(slot, name=slot.name or slot.start)
        with _naming_field(path, members):
            check_slot(slot, slots)
        slots.append(replace(slot, days_of_week=tuple(sorted(slot.days_of_week))))
    head = {**document, "tables": tuple(tables), "slots": tuple(slots)}
    venue = _read(VenueFile, "", head, **_VENUE)
    with _naming_field("", {**document, "evening_ends_at": venue.evening_ends_at}):
        check_venue(venue, zones)
        check_evenings(slots, venue.evening_ends_at, "evening_ends_at")
    _check_policies(venue.policies)
    if not tables:
        raise OperatorError("tables is missing from the venue file. Add a [[tables]] section.")
    return venue


def _entries(document: Mapping[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (path prefix for errors, members) for each `[[name]]` section.

    Raises OperatorError if `name` is not an array of tables.
    """
    value = document.get(name, [])
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise OperatorError(f"{name} is {value!r} in the venue file. Use [[{name}]] sections.")
    return [(f"{name}[{i}].", entry) for i, entry in enumerate(value)]


def _read(kind: type[T], path: str, members: Mapping[str, Any], **defaults: Any) -> T:
    """Create an object of type `kind` from the members of a TOML table.

    Raises OperatorError if a member is unknown, missing or of the wrong type.
    """
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for name in members:
        if name not in known or name == "id":
            raise OperatorError(f"{path}{name} in the venue file is not a known field")
    values: dict[str, Any] = {}
    for name, field in known.items():
        is_needed = field.default is MISSING
        value = members.get(name, defaults.get(name, None if is_needed else field.default))
        if value is None and name not in defaults and is_needed:
            raise OperatorError(f"{path}{name} is missing from the venue file")
        allowed = _wrong_type(field.type, value)
        if allowed:
            raise OperatorError(
                f"{path}{name} is {value!r} in the venue file, but must be {allowed}"
            )
        if isinstance(value, str):
            value = value.strip() or (None if field.type == str | None else "")
        values[name] = value
    return kind(**values)


def _wrong_type(kind: object, value: object) -> str | None:
    """Return a description of the type `kind` if `value` has a different type, otherwise None."""
    if kind is int or (kind == int | None and value is not None):
        return None if type(value) is int else "a whole number"
    if kind is bool:
        return None if isinstance(value, bool) else "true or false"
    if kind is str or (kind == str | None and value is not None):
        return None if isinstance(value, str) else "text"
    if kind == tuple[int, ...]:
        real = isinstance(value, list) and all(type(day) is int for day in value)
        return None if real else "a list of different days from 0 (Sunday) to 6 (Saturday)"
    if kind == dict[str, Any] | None and value is not None:
        return None if isinstance(value, dict) else "a [policies] section"
    return None


@contextmanager
def _naming_field(path: str, members: Mapping[str, Any]) -> Iterator[None]:
    """Convert a ValidationError to an OperatorError that names the field's path in the file."""
    try:
        yield
    except ValidationError as refusal:
        name = _FILE_NAMES.get(refusal.field or "", refusal.field or "")
        value = members.get(name)
        raise OperatorError(
            f"{path}{name} is {value!r} in the venue file: {refusal.rule}"
        ) from None


def _check_policies(policies: dict[str, Any] | None) -> None:
    try:
        json.dumps(policies, allow_nan=False)
    except (RecursionError, TypeError, ValueError):
        raise OperatorError(
            "policies in the venue file may contain only strings, numbers, booleans, arrays and "
            "tables"
        ) from None
