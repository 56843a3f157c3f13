"""The verdict on a scan: its result and colour, and the messages for staff and for the guest.

The box and the terminal agent both use `judge` and `phrase`. The door app has its own
implementation, which must pass the same test vectors.
"""

from collections.abc import Mapping
from datetime import date
from functools import lru_cache

import msgspec
from babel import Locale
from babel.dates import format_date
from msgspec import Struct, field

from appliance.core.i18n import Language, isolate, load_languages
from appliance.core.i18n import mark as _
from appliance.reservations.model import Reservation, start_date

COLOURS: Mapping[str, str] = {
    "checked_in": "green", "party_added": "green", "came_back": "green", "walk_in": "green",
    "went_out": "green",
    "already_checked_in": "amber", "party_full": "amber", "not_yet": "amber", "too_late": "amber",
    "not_confirmed": "amber", "payment_due": "amber", "ambiguous": "amber", "not_inside": "amber",
    "revoked": "amber", "cancelled": "red", "declined": "red", "wrong_venue": "red",
    "test_code": "red", "bad_signature": "red", "unknown_code": "red",
    "undone": "grey", "error": "grey",
}  # fmt: skip
# Results that staff may override with a reason. All of them are about a known reservation.
OVERRIDABLE = frozenset({
    "already_checked_in", "party_full", "not_yet", "too_late", "not_confirmed", "payment_due",
    "cancelled", "declined", "revoked",
})  # fmt: skip

_NEARLY = 0.95  # above this part of its capacity, the venue is nearly full
_NOT_SETTLED = {
    "requested": "not_confirmed", "pending": "payment_due", "partial": "payment_due",
}  # fmt: skip


class Seen(Struct, frozen=True, array_like=True):
    """A reservation's state at the time of the verdict, without personal data.

    `date` is the evening. `starts_on` is the date on which the slot starts: the next day if it
    starts after midnight. In a verdict that an older version stored, `starts_on` is "". `out` is
    how many of those that arrived are out, and `out_at` (ms since 1970) when somebody last went.
    """

    id: str
    date: str
    slot: str | None
    table_id: str
    table_name: str
    guests: int
    arrived: int
    status: str
    starts_on: str = ""
    out: int = 0
    out_at: int | None = None

    @property
    def inside(self) -> int:
        """How many of the party are inside."""
        return max(0, self.arrived - self.out)


class FirstCheckIn(Struct, frozen=True, array_like=True):
    """A party's first admission.

    `at` is in ms since 1970. `clock` is the same time as HH:MM in the venue's time zone. `by` is
    the name of the staff member who checked the party in from the portal, or None.
    """

    at: int
    clock: str
    terminal: str | None
    by: str | None


class Verdict(Struct, frozen=True):
    """The decision on a scan.

    `admitted` is the number of people admitted, negative for an undo. `overrode` is the result
    that was overridden, if any. `candidates` are the reservations to choose from if the result is
    `ambiguous`. `moved` is the number of people who came back in, negative if they went out.
    `went_out` is the time (HH:MM) at which they had gone out. `occupancy` is (people inside,
    capacity) if the venue is nearly full.
    """

    result: str
    reservation: Seen | None = None
    admitted: int = 0
    first_check_in: FirstCheckIn | None = field(default=None, name="first")
    candidates: tuple[Seen, ...] = ()
    overrode: str | None = None
    moved: int = 0
    went_out: str | None = None
    occupancy: tuple[int, int] | None = None

    @property
    def colour(self) -> str:
        """The colour of the result: green, amber, red or grey."""
        return COLOURS[self.result]

    def to_json(self) -> str:
        """Return the verdict as JSON, which the scan log stores so that the box can repeat it."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> "Verdict":
        """Parse a verdict written by `to_json`."""
        return msgspec.json.decode(text, type=cls)


def see(
    reservation: Reservation, *, arrived: int | None = None, out: int | None = None,
    out_at: int | None = None,
) -> Seen:  # fmt: skip
    """Return the state of `reservation` for a verdict.

    Unless they are None, `arrived`, `out` and `out_at` replace the reservation's own values.
    """
    r = reservation
    present = r.arrived if arrived is None else arrived
    return Seen(
        r.id, r.date, r.slot, r.table_id, r.table_name, r.guests, present, r.status,
        start_date(r).isoformat(), r.people_out if out is None else out, out_at or r.went_out_at,
    )  # fmt: skip


def judge(
    reservation: Reservation,
    *, generation: int | None, arrivals: int | None, tonight: date, too_early: bool,
) -> str:  # fmt: skip
    """Return the result for a known reservation, according to docs/decisions/door.md.

    `generation` is that of the `Reading`; None if the text has none. `arrivals` is
    the number of people at the door, or None for all who have not arrived yet. `too_early` is True
    if the reservation starts more than the venue's `early_minutes` after the scan.
    """
    if generation is not None and generation != reservation.generation:
        return "revoked"
    if not reservation.holds:
        return reservation.status
    evening = date.fromisoformat(reservation.date)
    if evening < tonight:
        return "too_late"
    if evening > tonight or too_early:
        return "not_yet"
    return _NOT_SETTLED.get(reservation.status) or _count_party(reservation, arrivals)


def fullness(inside: int, capacity: int | None) -> str | None:
    """Return `full`, `near` from 95 % of the capacity on, or None."""
    if capacity is None or inside < capacity * _NEARLY:
        return None
    return "full" if inside >= capacity else "near"


def awaited_back(reservation: Reservation) -> int:
    """Return how many of the party are out and may come back: 0 after its table was freed."""
    return 0 if reservation.is_gone else min(reservation.people_out, reservation.arrived)


def _count_party(reservation: Reservation, arrivals: int | None) -> str:
    missing, out = max(0, reservation.guests - reservation.arrived), awaited_back(reservation)
    if reservation.is_gone:  # nobody of the party is awaited any more
        missing = 0
    if not missing and not out:
        return "already_checked_in"
    if arrivals is not None and arrivals > missing + out:
        return "party_full"
    if out and (arrivals is None or arrivals <= out):
        return "came_back"
    return "checked_in" if reservation.checked_in_at is None else "party_added"


LANGUAGES = ("fr", "ar", "en")


class Sentences(Struct, frozen=True):
    """A verdict's message for staff and its message for the guest."""

    staff: str
    guest: str


def phrase(verdict: Verdict, language: str) -> Sentences:
    """Return the messages for `verdict`, in French if `language` is unknown."""
    known = load_languages().get(language)
    staff, details = _STAFF[verdict.result], _details(verdict, known)
    if verdict.result == "already_checked_in" and verdict.first_check_in is None:
        staff = _ALREADY_IN
    if verdict.reservation is None:
        staff = _WITHOUT_TABLE.get(verdict.result, staff)
    told = known.plain(staff, **details)
    if verdict.occupancy is not None:
        inside, capacity = verdict.occupancy
        filled = _FULL if fullness(inside, capacity) == "full" else _NEARLY_FULL
        told = f"{told} {known.plain(filled, inside=str(inside), capacity=str(capacity))}"
    return Sentences(told, known.plain(_GUEST[verdict.result], **details))


def _details(verdict: Verdict, language: Language) -> dict[str, str]:
    seen, first = verdict.reservation, verdict.first_check_in
    names = [name for name in (first.terminal, first.by) if name] if first else []
    details = {
        "first": first.clock if first else "—",
        "terminal": " · ".join(names) or "—",
        "admitted": _count_people(verdict.admitted, language),
        "moved": _count_people(verdict.moved, language),
        "went_out": verdict.went_out or "—",
    }
    if seen is not None:
        details |= {
            "table": seen.table_name,
            "party": _count_people(seen.guests, language),
            "arrived": str(seen.arrived),
            "guests": str(seen.guests),
            "inside": str(seen.inside),
            "when": _when(seen.starts_on or seen.date, seen.slot, language),
        }
    if language.code == "ar":  # keeps Latin names in place in a right-to-left sentence
        return {name: isolate(text) or "" for name, text in details.items()}
    return details


def _count_people(count: int, language: Language) -> str:
    return language.ngettext("%(count)s guest", "%(count)s guests", abs(count))


def _when(day: str, slot: str | None, language: Language) -> str:
    when = _format_day(day, language.locale)
    return when if slot is None else language.plain("%(date)s at %(time)s", date=when, time=slot)


@lru_cache(maxsize=64)  # most scans are for the same few evenings
def _format_day(day: str, locale: Locale) -> str:
    return format_date(date.fromisoformat(day), "EEEE d MMMM", locale=locale)


_NEARLY_FULL = _("Venue almost full: %(inside)s of %(capacity)s.")
_FULL = _("Venue full: %(inside)s of %(capacity)s.")
# The messages about people who belong to no reservation
_WITHOUT_TABLE = {
    "went_out": _("Out without a code: %(moved)s."),
    "undone": _("Count undone."),
}
# The message if the party's first check-in is no longer in the log.
_ALREADY_IN = _("Already in: %(arrived)s of %(guests)s.")
_STAFF: Mapping[str, str] = {
    "checked_in": _("Let in: %(table)s, %(admitted)s."),
    "party_added": _("Same party, %(admitted)s more: %(arrived)s of %(guests)s are in."),
    "came_back": _("Back in: %(moved)s. Went out at %(went_out)s."),
    "walk_in": _("Let in without a table: %(admitted)s."),
    "went_out": _("Out: %(moved)s. Still in: %(inside)s of %(arrived)s."),
    "not_inside": _("Not counted out: %(inside)s of this party are inside."),
    "already_checked_in": _(
        "Already in since %(first)s (%(terminal)s): %(arrived)s of %(guests)s."
    ),
    "party_full": _("More people than booked: %(arrived)s of %(guests)s are already in."),
    "not_yet": _("Too early: expected on %(when)s."),
    "too_late": _("Too late: expected on %(when)s."),
    "not_confirmed": _("Request not accepted yet."),
    "payment_due": _("Payment incomplete."),
    "ambiguous": _("Several reservations match: choose one."),
    "cancelled": _("Reservation cancelled, table released."),
    "declined": _("Request declined, table released."),
    "revoked": _("Code replaced: ask for the newest one."),
    "wrong_venue": _("Code from another venue."),
    "test_code": _("Code from the other environment (test or live)."),
    "bad_signature": _("Damaged or forged code."),
    "unknown_code": _("Unknown code tonight."),
    "undone": _("Check-in undone: %(arrived)s of %(guests)s counted."),
    "error": _("Box error: scan again."),
}
_GUEST: Mapping[str, str] = {
    "checked_in": _("Welcome, your table is %(table)s."),
    "party_added": _("Welcome, your party is at %(table)s."),
    "came_back": _("Welcome back."),
    "walk_in": _("Welcome."),
    "went_out": _("Goodbye, see you soon."),
    "not_inside": _("One moment, please."),
    "already_checked_in": _("This code has already been used: please see the host."),
    "party_full": _("Your reservation is for %(party)s."),
    "not_yet": _("Your reservation is for %(when)s."),
    "too_late": _("Your reservation was for %(when)s."),
    "not_confirmed": _("Your request awaits an answer: one moment, please."),
    "payment_due": _("A payment is still due: please see the host."),
    "ambiguous": _("One moment, we are checking."),
    "cancelled": _("This reservation was cancelled."),
    "declined": _("This request was not accepted."),
    "revoked": _("This code was replaced: please show the newest one."),
    "wrong_venue": _("This code belongs to another venue."),
    "test_code": _("This code is not valid here."),
    "bad_signature": _("Unreadable code: please show it again."),
    "unknown_code": _("We cannot find this code: one moment, please."),
    "undone": _("One moment, please."),
    "error": _("One moment, please."),
}
