"""The reservation as a calendar entry, in the visitor's words."""

from typing import Any

from appliance.i18n import Language
from appliance.model.calendar_entry import CalendarEntry, hours_of
from web.guest.opened_link import OpenedLink


def make_calendar(opened: OpenedLink, card: dict[str, Any], language: Language, url: str) -> str:
    """An `.ics` with one event; the same event with a higher SEQUENCE after each change.

    A whole evening runs from the first slot of that weekday to the end of the last, or is an
    all-day event at a venue without slots.
    """
    details = language.gettext("Access code: %(code)s", code=card["code"]) if card["code"] else ""
    return CalendarEntry(
        reservation=opened.reservation,
        day=opened.day,
        hours=hours_of(opened.reservation, opened.slots, opened.venue.evening_ends_at),
        zone=opened.zone,
        summary=language.gettext("Table at %(venue)s", venue=card["venue"]),
        location=", ".join(filter(None, (card["venue"], card["address"]))),
        description="\n".join(filter(None, (card["party"], details, url))),
        url=url,
    ).to_ics()
