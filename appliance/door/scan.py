"""A scan: what was read, the reservation it refers to, and the verdict on it.

The box and the agent both use `classify`, `read_pass`, `judge` and `phrase`. The door app has its
own implementation, which must pass the same test vectors.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

import msgspec
from babel import Locale
from babel.dates import format_date
from msgspec import Struct, field

from appliance.core.i18n import Language, isolate, load_languages
from appliance.core.i18n import mark as _
from appliance.core.tokens import Keyring
from appliance.database.connection import Reader
from appliance.door.guest_pass import (
    VERSIONS,
    GuestPass,
    ReadPass,
    decode_passes,
    find_verifying_key,
    get_venue_tag,
    lookalikes,
    parse_access_code,
    resembles_pass,
)
from appliance.reservations.model import Reservation, start_date
from appliance.reservations.rows import list_evening
from appliance.reservations.search import is_name, search_by_name
from appliance.staff.model import StaffMember
from appliance.venue.model import find_tonight

COLOURS: Mapping[str, str] = {
    "checked_in": "green", "party_added": "green",
    "already_checked_in": "amber", "party_full": "amber", "not_yet": "amber", "too_late": "amber",
    "not_confirmed": "amber", "payment_due": "amber", "ambiguous": "amber",
    "cancelled": "red", "declined": "red", "revoked": "red", "wrong_venue": "red",
    "test_code": "red", "bad_signature": "red", "unknown_code": "red",
    "undone": "grey", "error": "grey",
}  # fmt: skip
# Results that staff may override with a reason. All of them are about a known reservation.
OVERRIDABLE = frozenset({
    "already_checked_in", "party_full", "not_yet", "too_late", "not_confirmed", "payment_due",
    "cancelled", "declined", "revoked",
})  # fmt: skip

TAKEN_BACK = "undone"  # the result of an admission that was made and undone offline
_LINK = re.compile(r"/access/([A-Za-z0-9_-]+)(/?(?:[?#].*)?$)?")
# A damaged pass may have this many wrong bytes in its venue tag. If more differ, another venue
# issued the pass.
_DAMAGED_BYTES = 2
_FULL = frozenset({"already_checked_in", "party_full"})


@dataclass(frozen=True, slots=True)
class Reading:
    """What a scanned text refers to.

    `kind` is pass, link, code, name, list or other. A genuine pass is in `guest_pass`; the other
    kinds list their possible reservations in `reservation_ids`. If the pass is not genuine or no
    reservation was found, `refused` is the result and `read_hash` is the text's SHA-256.
    """

    kind: str
    reservation_ids: tuple[str, ...] = ()
    guest_pass: GuestPass | None = None
    refused: str | None = None
    read_hash: bytes | None = None


UNREAD = Reading("other")  # of a scan whose text has not been looked up yet


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan. Scans from the same terminal with the same `id` are the same scan.

    - `arrivals`: the number of people at the door, or None for all who are still missing.
    - `reason`: why staff override a refusal or undid an admission.
    - `simulate`: true to decide the scan without admitting the party.
    - `device_at`: the time on the terminal's clock, in ms since 1970.
    - `staff`: the staff member who checks in the party from the portal.
    - `shown`: the result that the terminal showed. None unless the scan was offline.
    - `happened_at`: the time of an offline scan on the box's clock, in ms since 1970.
    """

    id: str
    reading: Reading
    arrivals: int | None = None
    reason: str | None = None
    simulate: bool = False
    device_at: int | None = None
    staff: StaffMember | None = None
    shown: str | None = None
    happened_at: int | None = None

    @property
    def was_let_in(self) -> bool:
        """Whether the terminal admitted the party offline, so that the party is inside."""
        if self.shown is None or self.was_taken_back:
            return False
        return self._shown_green or self.reason is not None

    @property
    def was_taken_back(self) -> bool:
        """Whether the terminal admitted the party offline and then undid the admission."""
        return self.shown == TAKEN_BACK

    def overfills(self, result: str) -> bool:
        """Whether staff knowingly admitted more people than were booked, with a reason.

        If the scan was online or the terminal showed green, staff overrode `result`, which is the
        box's result. Otherwise they overrode the result that the terminal showed.
        """
        overridden = result if self.shown is None or self._shown_green else self.shown
        return self.reason is not None and overridden in _FULL

    @property
    def _shown_green(self) -> bool:
        return COLOURS.get(self.shown or "") == "green"


def compensation_id(scan_id: str) -> str:
    """Return a second scan id for a scan that the box refused but the terminal admitted offline.

    This happens if the refusal does not reach the terminal in time. The refusal is logged under
    `scan_id`, and the admission is logged under the returned id.
    """
    return f"{scan_id}~apart"


def classify(text: str) -> tuple[str, str]:
    """Classify a scanned or typed text by its form, and return (kind, value).

    - link: the value is the token, or "" if other text follows the token.
    - code: the value is the access code. A text of four letters may also be a name.
    - pass, name and other: the value is the text itself.
    """
    access_code = parse_access_code(text)
    if access_code is not None:
        return "code", access_code
    if resembles_pass(text):
        return "pass", text
    link = _LINK.search(text.strip())
    if link is not None:
        return "link", link[1] if link[2] is not None else ""
    return "name" if is_name(text) else "other", text


def read_pass(
    text: str, environment: str, venue_tag: bytes, verify: Callable[[ReadPass], GuestPass | None]
) -> GuestPass | str:
    """Return the genuine guest pass in `text`, or the result code of the refusal.

    `verify` must return the pass, or None if it was not signed with a key of this box.
    """
    likeliest: ReadPass | None = None
    for read in decode_passes(text):
        genuine = verify(read)
        if genuine is not None:
            return _find_foreign(read, environment, venue_tag) or genuine
        likeliest = likeliest or read
    foreign = _find_foreign(likeliest, environment, venue_tag) if likeliest else None
    return foreign or "bad_signature"


def _find_foreign(read: ReadPass, environment: str, venue_tag: bytes) -> str | None:
    """Return `test_code` or `wrong_venue` if the pass is for another environment or venue.

    Return None otherwise. The signature is not verified, because it was made with the key of the
    other environment or venue, which is not available here.
    """
    if read.guest_pass.version != VERSIONS[environment]:
        return "test_code"
    pairs = zip(read.guest_pass.venue_tag, venue_tag, strict=True)
    return "wrong_venue" if sum(a != b for a, b in pairs) > _DAMAGED_BYTES else None


# The generation given to passes signed with a leaked key. No reservation has it, so these passes
# are refused as revoked.
_REPLACED = -1


def look_up_code(
    reader: Reader, keyring: Keyring, environment_name: str, text: str,
    *, by_name: bool, at: int | None = None,
) -> Reading:  # fmt: skip
    """Look up a guest pass, an access link, an access code or, if `by_name`, a customer's name.

    Codes and names are looked up among the reservations for the evening at `at` (ms since 1970,
    default: now).
    """
    kind, value = classify(text)
    if kind == "pass":
        return _read_pass(reader, keyring, environment_name, text)
    reservation_id = keyring.read_access_token(value) if kind == "link" and value else None
    if reservation_id is not None:
        return Reading("link", (reservation_id,))
    evening = find_tonight(reader, at).isoformat()
    found = _find_by_code(reader, value, evening) if kind == "code" else ()
    if found:
        return Reading("code", found)
    named = _find_by_name(reader, text, evening) if by_name and is_name(text) else ()
    if named:
        return Reading("name", named)
    return Reading(
        "code" if kind == "code" else "other", refused="unknown_code", read_hash=_hash(text)
    )


def _read_pass(reader: Reader, keyring: Keyring, environment_name: str, text: str) -> Reading:
    def verify(read: ReadPass) -> GuestPass | None:
        key, has_leaked = find_verifying_key(reader, keyring, read.guest_pass.kid) or (None, False)
        if key is None or not read.is_signed_with(key):
            return None
        return replace(read.guest_pass, generation=_REPLACED) if has_leaked else read.guest_pass

    outcome = read_pass(text, environment_name, get_venue_tag(reader), verify)
    if isinstance(outcome, GuestPass):
        return Reading("pass", guest_pass=outcome)
    return Reading("pass", refused=outcome, read_hash=_hash(text))


def _find_by_code(reader: Reader, access_code: str, evening: str) -> tuple[str, ...]:
    """Return the ids of the evening's reservations with that code, or else with similar codes."""
    sql = """SELECT id FROM reservation
             WHERE access_code IN (SELECT value FROM json_each(:codes)) AND date = :evening
             ORDER BY access_code"""
    for codes in ([access_code], lookalikes(access_code)):
        found = reader.rows(sql, {"codes": json.dumps(codes), "evening": evening})
        if ids := tuple(row[0] for row in found):
            return ids
    return ()


def _find_by_name(reader: Reader, text: str, evening: str) -> tuple[str, ...]:
    found = search_by_name(list_evening(reader, evening), text)
    return tuple(reservation.id for reservation in found if reservation.holds)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.strip().encode()).digest()


_NOT_SETTLED = {
    "requested": "not_confirmed", "pending": "payment_due", "partial": "payment_due",
}  # fmt: skip


class Seen(Struct, frozen=True, array_like=True):
    """A reservation's state at the time of the verdict, without personal data.

    `date` is the evening. `starts_on` is the next day if the slot starts after midnight. It is ""
    in a verdict that an older version stored.
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
    `ambiguous`.
    """

    result: str
    reservation: Seen | None = None
    admitted: int = 0
    first_check_in: FirstCheckIn | None = field(default=None, name="first")
    candidates: tuple[Seen, ...] = ()
    overrode: str | None = None

    @property
    def colour(self) -> str:
        """The colour of the result: green, amber, red or grey."""
        return COLOURS[self.result]

    def to_json(self) -> str:
        """Return the verdict as JSON. The scan log stores it to repeat the response later."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> "Verdict":
        """Parse a verdict written by `to_json`."""
        return msgspec.json.decode(text, type=cls)


def see(reservation: Reservation, *, arrived: int | None = None) -> Seen:
    """Return the state of `reservation` for a verdict.

    `arrived` replaces the reservation's own number of people inside, unless it is None.
    """
    r = reservation
    present = r.arrived if arrived is None else arrived
    return Seen(
        r.id, r.date, r.slot, r.table_id, r.table_name, r.guests, present, r.status,
        start_date(r).isoformat(),
    )  # fmt: skip


def judge(
    reservation: Reservation,
    *, generation: int | None, arrivals: int | None, tonight: date, too_early: bool,
) -> str:  # fmt: skip
    """Return the result for a known reservation, according to docs/decisions/door.md.

    `generation` is the scanned pass's generation, or None if no pass was scanned. `arrivals` is
    the number of people at the door, or None for all who are still missing. `too_early` is True if
    the reservation starts more than `door.early_minutes` minutes after the scan.
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


def _count_party(reservation: Reservation, arrivals: int | None) -> str:
    missing = reservation.guests - reservation.arrived
    if missing <= 0:
        return "already_checked_in"
    if arrivals is not None and arrivals > missing:
        return "party_full"
    return "checked_in" if reservation.checked_in_at is None else "party_added"


LANGUAGES = ("fr", "ar", "en")


@dataclass(frozen=True, slots=True)
class Sentences:
    """A verdict's message for staff and its message for the guest."""

    staff: str
    guest: str


def phrase(verdict: Verdict, language: str) -> Sentences:
    """Return the messages for `verdict`, in French if `language` is unknown."""
    known = load_languages().get(language)
    staff, details = _STAFF[verdict.result], _details(verdict, known)
    if verdict.result == "already_checked_in" and verdict.first_check_in is None:
        staff = _ALREADY_IN
    return Sentences(known.plain(staff, **details), known.plain(_GUEST[verdict.result], **details))


def _details(verdict: Verdict, language: Language) -> dict[str, str]:
    seen, first = verdict.reservation, verdict.first_check_in
    names = [name for name in (first.terminal, first.by) if name] if first else []
    details = {"first": first.clock if first else "—", "terminal": " · ".join(names) or "—"}
    if seen is not None:
        details |= {
            "table": seen.table_name,
            "admitted": _count_people(verdict.admitted, language),
            "party": _count_people(seen.guests, language),
            "arrived": str(seen.arrived),
            "guests": str(seen.guests),
            "when": _when(seen.starts_on or seen.date, seen.slot, language),
        }
    if language.code == "ar":  # so that Latin names keep their place in a right-to-left sentence
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


# The message if the party's first check-in is no longer in the log.
_ALREADY_IN = _("Already in: %(arrived)s of %(guests)s.")
_STAFF: Mapping[str, str] = {
    "checked_in": _("Let in: %(table)s, %(admitted)s."),
    "party_added": _("Same party, %(admitted)s more: %(arrived)s of %(guests)s are in."),
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
    "already_checked_in": _("This code has already been used: please see the host."),
    "party_full": _("Your reservation is for %(party)s."),
    "not_yet": _("Your reservation is for %(when)s."),
    "too_late": _("Your reservation was for %(when)s."),
    "not_confirmed": _("Your request awaits an answer: one moment, please."),
    "payment_due": _("A payment is still due: please see the host."),
    "ambiguous": _("One moment, we are checking."),
    "cancelled": _("This reservation was cancelled."),
    "declined": _("This request was not accepted."),
    "revoked": _("This code was replaced: please open the link of your reservation."),
    "wrong_venue": _("This code belongs to another venue."),
    "test_code": _("This code is not valid here."),
    "bad_signature": _("Unreadable code: please show it again."),
    "unknown_code": _("We cannot find this code: one moment, please."),
    "undone": _("One moment, please."),
    "error": _("One moment, please."),
}
