"""Reservations: statuses, row data, times and deadlines (interface, sections 2.5 and 3)."""

import json
from collections.abc import Iterable
from datetime import date, timedelta

from msgspec import Struct

from appliance.clock import HOUR_MS, MINUTE_MS
from appliance.core.phone_numbers import searched_numbers
from appliance.core.text import fold
from appliance.database.connection import Reader
from appliance.venue.model import (
    DAY_MINUTES,
    evening_end,
    evening_hours,
    find_zone,
    get_venue,
    list_slots,
    minute_of,
    minutes,
)

STATUSES = ("requested", "confirmed", "completed", "pending", "partial", "cancelled", "declined")
FREEING_STATUSES = ("cancelled", "declined")
# Reservations with these statuses can be changed.
OPEN_STATUSES = ("requested", "pending", "partial", "confirmed")
LAST_GENERATION = 255  # the highest generation number that a guest pass can hold
LANGUAGES = ("fr", "en", "ar")  # of guests' emails and pages
SOURCES = ("platform", "manual", "partner")
_TITLES = frozenset({
    "mr", "mrs", "ms", "miss", "dr", "prof", "m", "mme", "mlle", "monsieur", "madame",
    "mademoiselle", "السيد", "السيده", "الانسه", "الدكتور", "الدكتوره",
})  # fmt: skip
# If the first word of a name is one of these, the given name includes the second word. If the
# second word is an article, it also includes the third word, as in “Abd el Kader”.
_NAME_PREFIXES = frozenset({"عبد", "ابو", "ام", "ابن", "abd", "abou", "abu", "oum", "umm"})
_ARTICLES = frozenset({"el", "al", "er", "ar", "es", "as", "en", "an"})


class Issued(Struct, frozen=True):
    """The result of a booking. A replay of its idempotency key returns the same result.

    `email_outcome` is None until the mail server has responded (interface, section 2.7).
    """

    reservation_id: str
    access_code: str
    link_expires_at: int
    email_outcome: str | None = None
    link_generation: int = 0


class Reservation(Struct, frozen=True):
    """A row of the database table `reservation`, plus the name and number of the booked table.

    A group has several tables: `table_id` is the first, `table_name` and `table_number` name all,
    and `group` is a JSON list of [id, name]. Timestamps are in ms since 1970; `starts` and
    `ends` are in minutes after midnight. `names_at_door` is the venue's rule, as in `Venue`.
    """

    seq: int
    id: str
    status: str
    source: str
    table_id: str
    table_name: str
    date: str
    slot: str | None
    starts: int
    ends: int
    guests: int
    customer_name: str | None
    customer_email: str | None
    customer_phone: str | None
    customer_numbers: str | None
    notes: str | None
    language: str | None
    access_code: str | None
    pass_id: bytes
    generation: int
    arrived: int
    checked_in_at: int | None
    link_expires_at: int
    created_at: int
    updated_at: int
    version: int
    cancelled_at: int | None
    expires_at: int | None
    external_ref: str | None
    lineage: str | None
    idempotency_key: str | None
    issued_code: str | None
    email_outcome: str | None
    left_at: int | None
    no_show: int
    walk_in: int
    late_at: int | None
    vip: int
    table_number: str
    group: str | None = None
    cancelled_by: str | None = None
    names_at_door: str = "initial"
    link_generation: int = 0
    replaced_codes: str | None = None
    people_out: int = 0
    went_out_at: int | None = None

    @property
    def inside(self) -> int:
        """How many of the party are inside now."""
        return max(0, self.arrived - self.people_out)

    @property
    def tables(self) -> list[tuple[str, str]]:
        """The (id, name) of each table, the first one first."""
        if self.group is None:
            return [(self.table_id, self.table_name)]
        return [(id_, name) for id_, name in json.loads(self.group)]

    @property
    def table_ids(self) -> tuple[str, ...]:
        """The id of each table, the first one first."""
        return tuple(id_ for id_, _ in self.tables)

    @property
    def customer_first_name(self) -> str | None:
        """The first word of the customer's name after titles, or None if the name was erased."""
        words = self._name_words()
        return words[0] if words else None

    @property
    def customer_given_name(self) -> str | None:
        """The given name for salutations, or None if the name was erased.

        Includes all words of a compound given name such as “Abd el Kader”.
        """
        words = self._name_words()
        if len(words) < 2 or fold(words[0]) not in _NAME_PREFIXES:
            return self.customer_first_name
        return " ".join(words[: 3 if fold(words[1]) in _ARTICLES else 2])

    @property
    def door_name(self) -> str | None:
        """What the door sees of the name, or None if it was erased: `Rachid`, `Rachid O.`, all."""
        if self.names_at_door == "whole":
            return self.customer_name
        given, words = self.customer_given_name, self._name_words()
        if self.names_at_door == "initial" and given and len(words) > len(given.split()):
            family = words[-1].removeprefix("ال") or words[-1]  # ignore the Arabic article
            return f"{given} {family[0].upper()}."
        return given

    @property
    def old_codes(self) -> list[str]:
        """The access codes that were replaced."""
        codes: list[str] = json.loads(self.replaced_codes or "[]")
        return codes

    @property
    def phone_end(self) -> str | None:
        """The last two digits of the guest's phone number, if there is one."""
        first, *_ = [*self.phone_numbers, self.customer_phone or ""]
        return "".join(c for c in first if c.isdecimal())[-2:] or None

    @property
    def phone_numbers(self) -> list[str]:
        """The sure numbers in `customer_phone`, in E.164."""
        return (self.customer_numbers or "").split()

    @property
    def searched_numbers(self) -> list[str]:
        """The texts in which a search for a phone number looks."""
        return searched_numbers(self.customer_phone, self.phone_numbers)

    def _name_words(self) -> list[str]:
        words = (self.customer_name or "").split()
        while len(words) > 1 and fold(words[0]).rstrip(".") in _TITLES:
            words = words[1:]
        return words

    @property
    def holds(self) -> bool:
        """Whether the reservation blocks its table (interface, section 3)."""
        return self.status not in FREEING_STATUSES

    @property
    def shown_status(self) -> str:
        """The status as staff read it: `no_show` for a reservation that was cancelled as one."""
        return "no_show" if self.no_show and self.status == "cancelled" else self.status

    @property
    def is_gone(self) -> bool:
        """Whether the party has left or did not come, so that its tables are free."""
        if self.no_show:
            return self.status == "cancelled"
        return self.left_at is not None and self.status == "completed"


def start_date(reservation: Reservation) -> date:
    """Return the calendar date on which the reservation starts.

    If it starts after midnight, this is the day after the evening's date.
    """
    return date.fromisoformat(reservation.date) + timedelta(minutes=reservation.starts)


def hours_of(reader: Reader, reservation: Reservation) -> tuple[int, int] | None:
    """Return the reservation's (start, end) in minutes after midnight.

    A reservation for the whole evening lasts from the start of the first slot to the end of the
    last slot. Returns None if the evening has no slots.
    """
    if reservation.slot is not None:
        return reservation.starts, reservation.ends
    day, ends_at = date.fromisoformat(reservation.date), get_venue(reader).evening_ends_at
    return evening_hours(list_slots(reader), day, ends_at)


def find_instants(reader: Reader, reservations: Iterable[Reservation]) -> list[tuple[int, int]]:
    """Return when each reservation starts and ends, in ms since 1970.

    A reservation for the whole evening lasts as `hours_of` says, or from midnight to the evening's
    end if it has no slots. The party may have left before.
    """
    slots, zone = list_slots(reader), find_zone(reader)
    ends_at = get_venue(reader).evening_ends_at
    found = []
    for each in reservations:
        day, hours = date.fromisoformat(each.date), (each.starts, each.ends)
        if each.slot is None:
            whole = (0, DAY_MINUTES + minutes(ends_at))
            hours = evening_hours(slots, day, ends_at) or whole
        starts, ends = (minute_of(day, at, zone) for at in hours)
        found.append((starts, min(ends, each.left_at or ends)))
    return found


def expected_at(reader: Reader, reservation: Reservation) -> int:
    """Return when the party is expected, in ms since 1970.

    A whole evening starts with the first slot.
    """
    starts, _ = hours_of(reader, reservation) or (0, 0)
    return minute_of(date.fromisoformat(reservation.date), starts, find_zone(reader))


def has_started(reader: Reader, reservation: Reservation) -> bool:
    """Whether the party is expected by now."""
    return reader.now >= expected_at(reader, reservation)


def is_awaited(reservation: Reservation) -> bool:
    """Whether the party is expected and nobody of it has come in."""
    is_expected = reservation.status in {"confirmed", "pending", "partial"}
    return is_expected and not reservation.arrived


def minutes_late(reader: Reader, reservation: Reservation) -> int | None:
    """Return by how many minutes an awaited party is late.

    None if it is not late yet by the venue's rule `lateArrivalMinutes`, or if there is no rule.
    """
    late_at = late_from(reader, reservation)
    if late_at is None or reader.now < late_at:
        return None
    return (reader.now - expected_at(reader, reservation)) // MINUTE_MS


def late_from(reader: Reader, reservation: Reservation) -> int | None:
    """Return from when the party is late, in ms since 1970, if it does not come before.

    None if it is not awaited, or if the venue has no rule `lateArrivalMinutes`.
    """
    kept = get_venue(reader).late_minutes
    if kept is None or not is_awaited(reservation):
        return None
    return expected_at(reader, reservation) + kept * MINUTE_MS


def find_deadline(
    reader: Reader, status: str, day: date, asked_at: int, least: int = 0
) -> int | None:
    """Return when a request, or a reservation to be paid in advance, expires (ms since 1970).

    This is the venue's hours after `asked_at`, but not before `least` and at most the end of the
    evening of `day`. None if the status or the venue has no deadline.
    """
    venue = get_venue(reader)
    allowed = {"requested": venue.request_expiry_hours, "pending": venue.payment_hours}
    hours = allowed.get(status, 0)
    last = evening_end(day, find_zone(reader), venue.evening_ends_at)
    return min(max(asked_at + hours * HOUR_MS, least), last) if hours else None


def cancel_deadline(reader: Reader, reservation: Reservation) -> int:
    """Return the guest's cancellation deadline in ms since 1970.

    The deadline is the venue's `cancel_hours` before the reservation starts. A reservation for the
    whole evening starts with the first slot. If the evening has no slots, the hours are counted
    from the end of the evening.
    """
    before = get_venue(reader).cancel_hours * HOUR_MS
    expected = hours_of(reader, reservation)
    if expected is None:
        return _end_of_evening(reader, reservation) - before
    day = date.fromisoformat(reservation.date)
    return minute_of(day, expected[0], find_zone(reader)) - before


def late_deadline(reader: Reader, reservation: Reservation) -> int:
    """Return until when a guest can announce a late arrival, in ms since 1970.

    This is as long as the venue's rule `lateArrivalMinutes` keeps the table or, without such a
    rule, until the evening ends.
    """
    kept = get_venue(reader).late_minutes
    if kept is None:
        return _end_of_evening(reader, reservation)
    return expected_at(reader, reservation) + kept * MINUTE_MS


def evening_is_over(reader: Reader, reservation: Reservation, at: int | None = None) -> bool:
    """Whether the reservation's evening has ended by `at` (ms since 1970, default: now)."""
    return (reader.now if at is None else at) >= _end_of_evening(reader, reservation)


def _end_of_evening(reader: Reader, reservation: Reservation) -> int:
    day, ends_at = date.fromisoformat(reservation.date), get_venue(reader).evening_ends_at
    return evening_end(day, find_zone(reader), ends_at)
