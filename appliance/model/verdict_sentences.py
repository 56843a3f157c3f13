"""What the door says: one sentence to the staff and one to the guest, in fr, en and ar."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from babel.dates import format_date

from appliance.i18n import Language, isolate, load_languages
from appliance.i18n import mark as _
from appliance.model.verdict import Verdict

LANGUAGES = ("fr", "ar", "en")


@dataclass(frozen=True, slots=True)
class Sentences:
    """What a terminal shows its staff, and what it says to the guest."""

    staff: str
    guest: str


def phrase(verdict: Verdict, language: str) -> Sentences:
    """The two sentences of `verdict`; unknown languages get French."""
    known = load_languages().get(language)
    staff, details = _STAFF[verdict.result], _details(verdict, known)
    if verdict.result == "already_checked_in" and verdict.first_check_in is None:
        staff = _IN_BEFORE
    return Sentences(known.plain(staff, **details), known.plain(_GUEST[verdict.result], **details))


def _details(verdict: Verdict, language: Language) -> dict[str, str]:
    seen, first = verdict.reservation, verdict.first_check_in
    names = [name for name in (first.terminal, first.by) if name] if first else []
    details = {"first": first.clock if first else "—", "terminal": ", ".join(names) or "—"}
    if seen is not None:
        details |= {
            "table": seen.table_name,
            "admitted": _people(verdict.admitted, language),
            "party": _people(seen.guests, language),
            "arrived": str(seen.arrived),
            "guests": str(seen.guests),
            "when": _when(seen.date, seen.slot, language),
        }
    if language.code == "ar":  # a Latin name keeps its place
        return {name: isolate(text) or "" for name, text in details.items()}
    return details


def _people(count: int, language: Language) -> str:
    return language.ngettext("%(count)s guest", "%(count)s guests", abs(count))


def _when(day: str, slot: str | None, language: Language) -> str:
    when = format_date(date.fromisoformat(day), "EEEE d MMMM", locale=language.locale)
    return when if slot is None else language.plain("%(date)s at %(time)s", date=when, time=slot)


_IN_BEFORE = _(
    "Already in: %(arrived)s of %(guests)s."
)  # where nobody knows since when a party is in
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
    "ambiguous": _("Several reservations fit: pick one."),
    "cancelled": _("Reservation cancelled, table freed."),
    "declined": _("Request declined, table freed."),
    "revoked": _("Code replaced: ask for the newest one."),
    "wrong_venue": _("Code of another venue."),
    "test_code": _("Code of the other environment, test or live."),
    "bad_signature": _("Code damaged or forged."),
    "unknown_code": _("Code unknown tonight."),
    "undone": _("Check-in taken back: %(arrived)s of %(guests)s counted."),
    "error": _("Our fault: scan again."),
}
_GUEST: Mapping[str, str] = {
    "checked_in": _("Welcome, your table is %(table)s."),
    "party_added": _("Welcome, your party is at %(table)s."),
    "already_checked_in": _("This code was already used: please see the host."),
    "party_full": _("Your reservation is for %(party)s."),
    "not_yet": _("Your reservation is for %(when)s."),
    "too_late": _("Your reservation was for %(when)s."),
    "not_confirmed": _("Your request awaits an answer: one moment, please."),
    "payment_due": _("A payment is still due: please see the host."),
    "ambiguous": _("One moment, we are looking."),
    "cancelled": _("This reservation was cancelled."),
    "declined": _("This request was not accepted."),
    "revoked": _("This code was replaced: please open the link of your reservation."),
    "wrong_venue": _("This code belongs to another venue."),
    "test_code": _("This code is not valid here."),
    "bad_signature": _("Unreadable code: please show it once more."),
    "unknown_code": _("We cannot find this code: one moment, please."),
    "undone": _("One moment, please."),
    "error": _("One moment, please."),
}
