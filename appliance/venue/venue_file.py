"""Validation of the venue, its tables and slots, and the parser of the venue file (TOML).

The file, the portal and every edit use the same rules: `check_venue`, `check_table` and
`check_slot`.
"""

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, TypeVar

from appliance.clock import ZoneDatabase
from appliance.core.errors import OperatorError, ValidationError, field_invalid
from appliance.venue.model import Slot, Table, Venue, is_slot, minutes

STATUSES = ("active", "inactive", "suspended")
MODES = ("free", "prepaid")
HOURS_MAX = 24 * 365
ADDRESS_MAX = 200
CAPACITY_MAX = 1000
SPEND_MAX = 10**9
NUMBER_MAX = TYPE_MAX = 40
NAME_MAX = 100
_VENUE_NAME_MAX = 200
_LATEST_END = 12 * 60
_MAP_URL = re.compile(r"https://[^\s\"'<>]{4,490}")
_PHONE_MAX = 40
_PHONE = re.compile(r"(?!.{41})\+?(?:[ ().-]{0,2}[0-9]){6,20}")
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")  # it names a file
_WEEK = frozenset(range(7))
# Fields whose name in the file differs from the portal's.
_NAMES = {"days": "days_of_week"}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VenueFile(Venue):
    """A valid venue file; nothing in it has an id."""

    tables: tuple[Table, ...] = ()
    slots: tuple[Slot, ...] = ()


# Defaults of fields that a file omits.
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
# The placeholder venue of a box that is not set up.
UNFURNISHED = VenueFile(**{**_VENUE, "name": "venuebox", "slug": "venuebox", "status": "inactive"})


def check_venue(venue: Venue, zones: ZoneDatabase) -> None:
    """Validate a venue. ValidationError for the first invalid field."""
    if not venue.name.strip():
        raise field_invalid("name", "name")
    _check_length("name", venue.name, _VENUE_NAME_MAX)
    if len(venue.slug) > NAME_MAX or not _SLUG.fullmatch(venue.slug):
        raise field_invalid("slug", "slug")
    for name, value, choices in (
        ("status", venue.status, STATUSES),
        ("reservation_mode", venue.reservation_mode, MODES),
    ):
        if value not in choices:
            raise field_invalid(name, "among", allowed=", ".join(choices))
    if not 1 <= venue.request_expiry_hours <= HOURS_MAX:
        raise field_invalid("request_expiry_hours", "hours", longest=HOURS_MAX)
    if not re.fullmatch("[A-Z]{3}", venue.currency):
        raise field_invalid("currency", "currency")
    if not is_slot(venue.evening_ends_at) or minutes(venue.evening_ends_at) > _LATEST_END:
        raise field_invalid("evening_ends_at", "evening_end")
    _check_length("address", venue.address or "", ADDRESS_MAX)
    if venue.map_url is not None and not _MAP_URL.fullmatch(venue.map_url):
        raise field_invalid("map_url", "map_url")
    if venue.phone is not None and not _PHONE.fullmatch(venue.phone):
        raise field_invalid("phone", "phone", longest=_PHONE_MAX)
    _check_zone(venue.time_zone, zones)


def _check_zone(name: str, zones: ZoneDatabase) -> None:
    fault = field_invalid("time_zone", "time_zone")
    if not _ZONE.fullmatch(name):
        raise fault
    try:
        zones.zone(name)
    except OperatorError:
        raise fault from None


def check_table(table: Table, taken: Collection[str]) -> None:
    """Validate a table; `taken` are the other tables' numbers. ValidationError."""
    if table.number in taken:
        raise field_invalid("number", "number_taken", number=table.number)
    for name, longest in (("number", NUMBER_MAX), ("name", NAME_MAX), ("type", TYPE_MAX)):
        value = getattr(table, name)
        if not value.strip():
            raise field_invalid(name, "table_texts")
        _check_length(name, value, longest)
    for name, value, smallest, largest in (
        ("capacity_min", table.capacity_min, 1, CAPACITY_MAX),
        ("capacity_max", table.capacity_max, 1, CAPACITY_MAX),
        ("minimum_spend", table.minimum_spend, 0, SPEND_MAX),
    ):
        if not smallest <= value <= largest:
            raise field_invalid(name, "whole_number_from", smallest=smallest, largest=largest)
    if table.capacity_max < table.capacity_min:
        raise field_invalid("capacity_max", "capacities")


def check_slot(slot: Slot, others: Iterable[Slot]) -> None:
    """Validate a slot against the `others`. ValidationError for the first invalid field."""
    for name, value in (("start", slot.start), ("end", slot.end)):
        if not is_slot(value):
            raise field_invalid(name, "time")
    _check_length("name", slot.name, NAME_MAX)
    days = set(slot.days_of_week)
    if not days or not days <= _WEEK or len(days) < len(slot.days_of_week):
        raise field_invalid("days", "a_day")
    for other in others:
        if other.start == slot.start and days & set(other.days_of_week):
            raise field_invalid("start", "slot_taken", name=other.name, start=slot.start)


def _check_length(name: str, value: str, longest: int) -> None:
    if len(value) > longest:
        raise field_invalid(name, "at_most", longest=longest)


def parse_venue_file(text: str, zones: ZoneDatabase) -> VenueFile:
    """Parse a venue file. OperatorError names the field, its value and the allowed values."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a 5,000-digit number, or deep nesting
        raise OperatorError(f"the venue file is not TOML: {error}") from None
    tables: list[Table] = []
    for path, members in _entries(document, "tables"):
        table = _read(Table, path, members, **_TABLE)
        if "name" not in members:
            table = replace(table, name=table.number)
        with _named(path, members):
            check_table(table, {other.number for other in tables})
        tables.append(table)
    slots: list[Slot] = []
    for path, members in _entries(document, "slots"):
        slot = _read(Slot, path, members, **_SLOT)
        slot = replace(slot, name=slot.name or slot.start)
        with _named(path, members):
            check_slot(slot, slots)
        slots.append(replace(slot, days_of_week=tuple(sorted(slot.days_of_week))))
    head = {**document, "tables": tuple(tables), "slots": tuple(slots)}
    venue = _read(VenueFile, "", head, **_VENUE)
    with _named("", document):
        check_venue(venue, zones)
    _check_policies(venue.policies)
    if not tables:
        raise OperatorError(
            "tables is missing from the venue file: at least one [[tables]] is needed"
        )
    return venue


def _entries(document: Mapping[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (path prefix, members) of each table of `[[name]]`. OperatorError if invalid."""
    value = document.get(name, [])
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise OperatorError(f"{name} is {value!r} in the venue file: [[{name}]] is allowed")
    return [(f"{name}[{i}].", entry) for i, entry in enumerate(value)]


def _read(kind: type[T], path: str, members: Mapping[str, Any], **defaults: Any) -> T:
    """Build a `kind` from a TOML table. OperatorError for unknown, missing or mistyped members."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for name in members:
        if name not in known or name == "id":
            raise OperatorError(f"{path}{name} in the venue file is not a known field")
    values: dict[str, Any] = {}
    for name, field in known.items():
        value = members.get(name, defaults.get(name))
        if value is None and name not in defaults and field.default is MISSING:
            raise OperatorError(f"{path}{name} is missing from the venue file")
        allowed = _wrong_type(field.type, value)
        if allowed:
            raise OperatorError(
                f"{path}{name} is {value!r} in the venue file: {allowed} is allowed"
            )
        if isinstance(value, str):
            value = value.strip() or (None if field.type == str | None else "")
        values[name] = value
    return kind(**values)


def _wrong_type(kind: object, value: object) -> str | None:
    """Describe the allowed type if `value` is not of type `kind`; None if it is."""
    if kind is int:
        return None if type(value) is int else "a whole number"
    if kind is bool:
        return None if isinstance(value, bool) else "true or false"
    if kind is str or (kind == str | None and value is not None):
        return None if isinstance(value, str) else "text"
    if kind == tuple[int, ...]:
        real = isinstance(value, list) and all(type(day) is int for day in value)
        return None if real else "a list of different days from 0 (Sunday) to 6 (Saturday)"
    if kind == dict[str, Any] | None and value is not None:
        return None if isinstance(value, dict) else "[policies]"
    return None


@contextmanager
def _named(path: str, members: Mapping[str, Any]) -> Iterator[None]:
    """Convert a ValidationError to an OperatorError with the field's path in the file."""
    try:
        yield
    except ValidationError as refusal:
        name = _NAMES.get(refusal.field or "", refusal.field or "")
        rule = refusal.rule.english.format(**refusal.rule.blanks) if refusal.rule else ""
        value = members.get(name)
        raise OperatorError(f"{path}{name} is {value!r} in the venue file: {rule}") from None


def _check_policies(policies: dict[str, Any] | None) -> None:
    try:
        json.dumps(policies, allow_nan=False)
    except RecursionError:  # almost too deep for the parser
        raise OperatorError(
            "policies is nested too deep in the venue file: use fewer levels"
        ) from None
    except (TypeError, ValueError):
        raise OperatorError(
            f"policies is {policies!r} in the venue file: "
            "a table of strings, numbers, booleans and arrays is allowed"
        ) from None
