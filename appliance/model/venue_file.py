"""The venue file: what a venue says about itself in TOML, parsed and checked."""

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any

from appliance.clock import ZoneDatabase
from appliance.errors import Trouble
from appliance.model.evening import is_slot, minutes

_LATEST_END = 12 * 60
_TEXT_MAX = 100
_SATURDAY = 6
ADDRESS_MAX = 200
MAP_URL = r"https://[^\s\"'<>]{4,490}"
_REQUIRED = object()


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One `[[tables]]`; `number` tells which table of the venue it describes."""

    number: str
    name: str
    capacity_min: int
    capacity_max: int
    minimum_spend: int
    type: str
    bookable: bool


@dataclass(frozen=True, slots=True)
class SlotEntry:
    """One `[[slots]]`. `end` at or before `start` is the next morning."""

    name: str
    start: str
    end: str
    days_of_week: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VenueFile:
    """A venue file that may be applied as it stands."""

    name: str
    slug: str
    status: str
    reservation_mode: str
    auto_confirm: bool
    request_expiry_hours: int
    currency: str
    time_zone: str
    evening_ends_at: str
    policies: dict[str, Any] | None
    tables: tuple[TableEntry, ...]
    slots: tuple[SlotEntry, ...]
    address: str | None = None
    map_url: str | None = None


# What a box is before its owner has said what it is for.
UNFURNISHED = VenueFile(
    name="venuebox",
    slug="venuebox",
    status="inactive",
    reservation_mode="free",
    auto_confirm=True,
    request_expiry_hours=24,
    currency="MAD",
    time_zone="Africa/Casablanca",
    evening_ends_at="06:00",
    policies=None,
    tables=(),
    slots=(),
)


def parse_venue_file(text: str, zones: ZoneDatabase) -> VenueFile:
    """The venue in `text`; Trouble names the field, what it is and what is allowed."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of 5,000 digits, a deep nest
        raise Trouble(f"the venue file is not TOML: {error}") from None
    fields = _Fields(document, "")
    venue = VenueFile(
        name=fields.text("name", longest=200),
        slug=fields.match("slug", r"[a-z0-9]+(-[a-z0-9]+)*", "lower-case words joined by -"),
        status=fields.one_of("status", ("active", "inactive", "suspended")),
        reservation_mode=fields.one_of("reservation_mode", ("free", "prepaid")),
        auto_confirm=fields.truth("auto_confirm", default=True),
        request_expiry_hours=fields.number("request_expiry_hours", 1, 24 * 365, default=24),
        currency=fields.match("currency", "[A-Z]{3}", "three capital letters", default="MAD"),
        time_zone=fields.text("time_zone", longest=60, default="Africa/Casablanca"),
        evening_ends_at=fields.time("evening_ends_at", default="06:00"),
        policies=_parse_policies(fields),
        tables=tuple(_parse_table(entry) for entry in fields.entries("tables")),
        slots=tuple(_parse_slot(entry) for entry in fields.entries("slots")),
        address=fields.optional_text("address", longest=ADDRESS_MAX),
        map_url=fields.optional_match("map_url", MAP_URL, "an https address"),
    )
    fields.refuse_others()
    _check_whole(venue, zones)
    return venue


class _Fields:
    """The members of one TOML table, taken one by one; what nobody took is refused."""

    def __init__(self, members: dict[str, Any], path: str) -> None:
        self._members = members
        self._path = path
        self._taken: set[str] = set()

    def take(self, name: str, default: object = _REQUIRED) -> object:
        """The raw member, `default` when it is absent; Trouble when it must be there."""
        self._taken.add(name)
        value = self._members.get(name, default)
        if value is _REQUIRED:
            raise Trouble(f"{self._path}{name} is missing from the venue file")
        return value

    def bad(self, name: str, allowed: str) -> Trouble:
        """The sentence about a member that is not as it should be."""
        value = self._members.get(name)
        return Trouble(f"{self._path}{name} is {value!r} in the venue file: {allowed} is allowed")

    def text(self, name: str, *, longest: int, default: object = _REQUIRED) -> str:
        value = self.take(name, default)
        if not isinstance(value, str) or not value.strip() or len(value) > longest:
            raise self.bad(name, f"text of 1 to {longest} characters")
        return value.strip()

    def optional_text(self, name: str, *, longest: int) -> str | None:
        """As `text`; None when absent."""
        return None if self.take(name, None) is None else self.text(name, longest=longest)

    def optional_match(self, name: str, pattern: str, allowed: str) -> str | None:
        """Text of that form and any length that it allows; None when absent."""
        value = self.take(name, None)
        if value is not None and not (isinstance(value, str) and re.fullmatch(pattern, value)):
            raise self.bad(name, allowed)
        return value

    def match(self, name: str, pattern: str, allowed: str, default: object = _REQUIRED) -> str:
        value = self.take(name, default)
        if not isinstance(value, str) or len(value) > _TEXT_MAX or not re.fullmatch(pattern, value):
            raise self.bad(name, allowed)
        return value

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        """One of `choices`; the first when absent."""
        value = self.take(name, choices[0])
        if value not in choices:
            raise self.bad(name, " or ".join(choices))
        return str(value)

    def truth(self, name: str, *, default: bool) -> bool:
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise self.bad(name, "true or false")
        return value

    def number(self, name: str, lowest: int, highest: int, default: object = _REQUIRED) -> int:
        value = self.take(name, default)
        if type(value) is not int or not lowest <= value <= highest:
            raise self.bad(name, f"a whole number from {lowest} to {highest}")
        return value

    def time(self, name: str, default: object = _REQUIRED) -> str:
        value = self.take(name, default)
        if not is_slot(value):
            raise self.bad(name, "a time of day such as 19:30")
        return str(value)

    def days(self, name: str) -> tuple[int, ...]:
        """Distinct weekdays, 0 = Sunday; every day when absent."""
        value = self.take(name, list(range(7)))
        if not isinstance(value, list) or not _are_days(value):
            raise self.bad(name, "a list of different days from 0 (Sunday) to 6 (Saturday)")
        return tuple(sorted(value))

    def entries(self, name: str) -> list["_Fields"]:
        """Each table of `[[name]]`."""
        value = self.take(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.bad(name, f"[[{name}]]")
        return [_Fields(entry, f"{name}[{i}].") for i, entry in enumerate(value)]

    def refuse_others(self) -> None:
        """Trouble for a member that this program does not know."""
        for name in self._members:
            if name not in self._taken:
                raise Trouble(f"{self._path}{name} in the venue file is not a known field")


def _are_days(value: list[object]) -> bool:
    real = all(type(day) is int and 0 <= day <= _SATURDAY for day in value)
    return real and 0 < len(value) == len(set(value))


def _parse_table(fields: _Fields) -> TableEntry:
    number = fields.text("number", longest=40)
    table = TableEntry(
        number=number,
        name=fields.text("name", longest=100, default=number),
        capacity_min=fields.number("capacity_min", 1, 1000, default=1),
        capacity_max=fields.number("capacity_max", 1, 1000),
        minimum_spend=fields.number("minimum_spend", 0, 10**9, default=0),
        type=fields.text("type", longest=40, default="standard"),
        bookable=fields.truth("bookable", default=True),
    )
    if table.capacity_max < table.capacity_min:
        raise fields.bad("capacity_max", f"capacity_min ({table.capacity_min}) or more")
    fields.refuse_others()
    return table


def _parse_slot(fields: _Fields) -> SlotEntry:
    start = fields.time("start")
    slot = SlotEntry(
        name=fields.text("name", longest=100, default=start),
        start=start,
        end=fields.time("end"),
        days_of_week=fields.days("days_of_week"),
    )
    fields.refuse_others()
    return slot


def _parse_policies(fields: _Fields) -> dict[str, Any] | None:
    policies = fields.take("policies", None)
    if policies is None:
        return None
    try:
        json.dumps(policies, allow_nan=False)
    except RecursionError:  # as deep as the parser just so read
        raise Trouble("policies is nested too deep in the venue file: a few levels do") from None
    except (TypeError, ValueError):
        raise fields.bad("policies", "a table of texts, numbers, truths and lists") from None
    if not isinstance(policies, dict):
        raise fields.bad("policies", "[policies]")
    return policies


def _check_whole(venue: VenueFile, zones: ZoneDatabase) -> None:
    """What no field tells alone."""
    try:
        zones.zone(venue.time_zone)
    except Trouble as trouble:
        raise Trouble(f"time_zone in the venue file: {trouble}") from None
    if minutes(venue.evening_ends_at) > _LATEST_END:
        raise Trouble(
            f"evening_ends_at is {venue.evening_ends_at!r} in the venue file: "
            "a time from 00:00 to 12:00 is allowed"
        )
    if not venue.tables:
        raise Trouble("tables is missing from the venue file: at least one [[tables]] is needed")
    numbers: set[str] = set()
    for i, table in enumerate(venue.tables):
        if table.number in numbers:
            raise Trouble(f"tables[{i}].number is {table.number!r} in the venue file, twice")
        numbers.add(table.number)
    starts: set[tuple[str, int]] = set()
    for i, slot in enumerate(venue.slots):
        for day in slot.days_of_week:
            if (slot.start, day) in starts:
                raise Trouble(
                    f"slots[{i}].start is {slot.start!r} in the venue file, "
                    f"and another slot starts then on day {day}"
                )
            starts.add((slot.start, day))
