"""The history of a reservation in sentences."""

from collections.abc import Iterable, Mapping

from appliance.model.venue import Table
from appliance.store.history import HistoryEntry
from web.languages import Language


def history_line(
    entry: HistoryEntry, staff: Mapping[str, str], tables: Iterable[Table], language: Language
) -> str:
    """`Moved from T1 to T4 · Yasmine`."""
    return f"{_what(entry, tables, language)} · {_who(entry, staff, language)}"


def _what(entry: HistoryEntry, tables: Iterable[Table], language: Language) -> str:
    _, detail = language.gettext, entry.detail
    if entry.what == "moved":
        numbers = {table.id: table.number for table in tables}
        return _(
            "Moved from %(before)s to %(after)s",
            before=numbers.get(detail.get("from", ""), "?"),
            after=numbers.get(detail.get("to", ""), "?"),
        )
    if entry.what == "payment":
        return _("Payment of %(amount)s received", amount=detail.get("amount", "?"))
    if entry.what in {"checked_in", "party_added"}:
        return language.ngettext(
            "%(count)s guest came in", "%(count)s guests came in", int(detail.get("people", 1))
        )
    if entry.what == "undone":
        return _("Check-in taken back")
    if entry.what == "amended" and "guests" in detail:
        before, after = detail["guests"]
        return _("Guests: %(before)s → %(after)s", before=before, after=after)
    words = {
        "created": _("Created"),
        "accepted": _("Accepted"),
        "declined": _("Declined"),
        "cancelled": _("Cancelled"),
        "completed": _("Completed"),
        "expired": _("Declined: nobody answered in time"),
        "amended": _("Corrected"),
        "late": _("Comes late"),
        "not_late": _("Does not come late after all"),
        "claimed": _("Claimed by the guest"),
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
