"""Reservations in sentences: their history, and why something was declined."""

from collections.abc import Iterable, Mapping

from appliance.errors import (
    CustomerNameRequired,
    InvalidSlot,
    InvalidTable,
    Refusal,
    TableNotBookable,
    TableNotFound,
    TableTaken,
    ValidationError,
    WrongState,
)
from appliance.house_errors import ChangedMeanwhile, NothingToUndo
from appliance.i18n import Language, isolate
from appliance.model.venue import Table
from appliance.store.history import HistoryEntry
from web.portal.answer import refusal_text


def status_word(status: str, language: Language) -> str:
    """How a reservation stands, in a word or two."""
    _ = language.gettext
    return {
        "requested": _("Requested"),
        "pending": _("Payment due"),
        "partial": _("Partly paid"),
        "confirmed": _("Confirmed"),
        "completed": _("Over"),
        "cancelled": _("Cancelled"),
        "declined": _("Declined"),
    }.get(status, status)


def source_word(source: str, language: Language) -> str:
    """Where a reservation comes from."""
    _ = language.gettext
    return {
        "partner": _("From a partner"),
        "platform": _("From the web"),
        "manual": _("Entered here"),
    }.get(source, source)


def refusal_line(refusal: Refusal, language: Language) -> str:
    """Why it was declined, in the words of the house: what happened, and what to do."""
    _ = language.gettext
    if isinstance(refusal, ValidationError):
        return _field_line(refusal, language)
    if isinstance(refusal, NothingToUndo):
        return _("Nobody of this party is in: there is nothing to take back.")
    if isinstance(refusal, WrongState) and refusal.details:
        status = status_word(str(refusal.details["state"]), language)
        return _("This is not possible any more. The reservation is: %(status)s", status=status)
    sentences: dict[type[Refusal], str] = {
        ChangedMeanwhile: _(
            "Somebody else has just changed this. Nothing was overwritten: "
            "see how it is now, and send again what should still change."
        ),
        TableTaken: _("This table is already taken then. Please choose another one."),
        InvalidTable: _("Please choose a table."),
        TableNotFound: _("Please choose a table."),
        TableNotBookable: _("This table is not open for reservations."),
        InvalidSlot: _("This time is not offered on that day. Please choose another one."),
        CustomerNameRequired: _("Please write the guest's name."),
    }
    return sentences.get(type(refusal)) or refusal_text(refusal, language)


def _field_line(refusal: ValidationError, language: Language) -> str:
    _ = language.gettext
    sentences = {
        "slot": _("Please choose a time."),
        "guests": _("Please write how many guests come, as a number."),
        "arrivals": _("Please write how many come in, as a number."),
        "amount": _("Please write the amount as a whole number, without cents."),
        "customer_phone": _("This phone number does not look right: 6 to 20 digits."),
        "notes": _("These notes are too long: 500 characters at most."),
        "customer_name": _("This name is too long: 200 characters at most."),
        "letter": _("Please write the email that the letter goes to, or leave the letter out."),
        "void_reason": _("Please write why this payment is voided."),
        "reason": _("Please write why: it stands in the door log."),
    }
    return sentences.get(refusal.field or "") or refusal_text(refusal, language)


def history_line(
    entry: HistoryEntry,
    staff: Mapping[str, str],
    tables: Iterable[Table],
    currency: str,
    language: Language,
) -> str:
    """`Moved from T1 to T4 · Yasmine`."""
    return f"{_what(entry, tables, currency, language)} · {_who(entry, staff, language)}"


def _what(entry: HistoryEntry, tables: Iterable[Table], currency: str, language: Language) -> str:
    _, detail = language.gettext, entry.detail
    if entry.what == "moved":
        numbers = {table.id: table.number for table in tables}
        return _(
            "Moved from %(before)s to %(after)s",
            before=numbers.get(detail.get("from", ""), "?"),
            after=numbers.get(detail.get("to", ""), "?"),
        )
    if entry.what in {"checked_in", "party_added"}:
        return language.ngettext(
            "%(count)s guest came in", "%(count)s guests came in", int(detail.get("people", 1))
        )
    if entry.what == "undone":
        return _("Check-in taken back")
    if entry.what == "amended" and "guests" in detail:
        before, after = detail["guests"]
        return _("Guests: %(before)s → %(after)s", before=before, after=after)
    money = f"{detail.get('amount', '?')} {currency}"
    reason = isolate(detail.get("reason")) or "–"
    words = {
        "created": _("Created"),
        "payment": _("Payment of %(amount)s received", amount=money),
        "payment_voided": _(
            "Payment of %(amount)s voided: %(reason)s", amount=money, reason=reason
        ),
        "accepted": _("Accepted"),
        "declined": _("Declined"),
        "cancelled": _("Cancelled"),
        "completed": _("Completed"),
        "expired": _("Declined: nobody answered in time"),
        "amended": _("Corrected"),
        "late": _("Comes late"),
        "not_late": _("Does not come late after all"),
        "pass_reissued": _("New code for the guest: the old one is refused"),
        "claimed": _("Claimed by the guest"),
        "erasure_asked": _("Asks for their data to be erased"),
        "erased": _("Personal data erased"),
    }
    return words.get(entry.what, entry.what)


def _who(entry: HistoryEntry, staff: Mapping[str, str], language: Language) -> str:
    _ = language.gettext
    kind, _separator, id_ = entry.actor.partition(":")
    if kind == "staff":
        return staff.get(id_, _("somebody of the house"))
    if entry.name is not None:
        return entry.name
    return {"guest": _("the guest"), "box": _("the box")}.get(kind, kind)
