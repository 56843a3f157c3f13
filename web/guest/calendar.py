"""The reservation as a calendar entry (RFC 5545), in UTC by the venue's zone rules."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from appliance.model.evening import day_of_week, interval
from appliance.model.venue import Slot
from web.guest.card import Card
from web.guest.opened_link import OpenedLink
from web.languages import Language

_STATES = {"confirmed": "CONFIRMED", "completed": "CONFIRMED", "cancelled": "CANCELLED",
           "declined": "CANCELLED"}  # fmt: skip
_LINE_OCTETS = 75


def make_calendar(opened: OpenedLink, card: Card, language: Language, url: str) -> str:
    """An `.ics` with one event; the same event with a higher SEQUENCE after each change.

    A whole evening runs from the first slot of that weekday to the end of the last, or is an
    all-day event at a venue without slots.
    """
    reservation = opened.reservation
    details = language.gettext("Access code: %(code)s", code=card.code) if card.code else ""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//venuebox//guest//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        "BEGIN:VEVENT",
        f"UID:{reservation.id}",
        f"DTSTAMP:{_utc(reservation.updated_at)}",
        f"SEQUENCE:{reservation.version}",
        *_when(opened),
        f"STATUS:{_STATES.get(reservation.status, 'TENTATIVE')}",
        "SUMMARY:" + _text(language.gettext("Table at %(venue)s", venue=card.venue)),
        f"LOCATION:{_text(card.venue)}",
        "DESCRIPTION:" + _text("\n".join(filter(None, (card.party, details, url)))),
        f"URL:{url}",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    return "".join(_fold(line) + "\r\n" for line in lines)


def _when(opened: OpenedLink) -> tuple[str, str]:
    reservation = opened.reservation
    hours: tuple[int, int] | None = (reservation.starts, reservation.ends)
    if reservation.slot is None:
        hours = evening_hours(opened.slots, opened.day, opened.venue.evening_ends_at)
    if hours is None:
        following = opened.day + timedelta(days=1)
        return f"DTSTART;VALUE=DATE:{opened.day:%Y%m%d}", f"DTEND;VALUE=DATE:{following:%Y%m%d}"
    starts, ends = (_utc(_instant(opened.day, at, opened.zone)) for at in hours)
    return f"DTSTART:{starts}", f"DTEND:{ends}"


def evening_hours(
    slots: tuple[Slot, ...], day: date, evening_ends_at: str
) -> tuple[int, int] | None:
    """Minutes after midnight from the first slot of that weekday to the end of the last."""
    weekday = day_of_week(day)
    offered = [interval(slot, evening_ends_at) for slot in slots if weekday in slot.days_of_week]
    if not offered:
        return None
    return min(start for start, _ in offered), max(end for _, end in offered)


def _instant(day: date, minutes: int, zone: ZoneInfo) -> int:
    """Milliseconds since 1970 of so many minutes after midnight, as venue clocks show it."""
    local = datetime(day.year, day.month, day.day) + timedelta(minutes=minutes)  # noqa: DTZ001 - the zone follows
    return round(local.replace(tzinfo=zone).timestamp() * 1000)


def _utc(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y%m%dT%H%M%SZ}"


def _text(value: str) -> str:
    """A TEXT value: what has a meaning in the format is escaped, control characters go."""
    escaped = value.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    lines = escaped.splitlines()
    return "\\n".join("".join(c for c in line if c.isprintable() or c == " ") for line in lines)


def _fold(line: str) -> str:
    """A content line in pieces of at most 75 octets, no character cut in two."""
    pieces, piece, room = [], "", _LINE_OCTETS
    for character in line:
        size = len(character.encode())
        if size > room:
            pieces.append(piece)
            piece, room = "", _LINE_OCTETS - 1  # a continuation starts with a space
        piece += character
        room -= size
    return "\r\n ".join([*pieces, piece])
