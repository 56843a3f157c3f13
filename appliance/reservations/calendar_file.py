"""iCalendar files (RFC 5545) of reservations, with times in UTC."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from appliance.reservations.model import Reservation
from appliance.venue.model import Slot, day_of_week, interval

_STATES = {"confirmed": "CONFIRMED", "completed": "CONFIRMED", "cancelled": "CANCELLED",
           "declined": "CANCELLED"}  # fmt: skip
_LINE_OCTETS = 75


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """One event. `hours` are minutes after midnight of `day`; None is the whole day.

    All files of a reservation have the same UID; a later state, with a higher SEQUENCE,
    replaces the earlier one.
    """

    reservation: Reservation
    day: date
    hours: tuple[int, int] | None
    zone: ZoneInfo
    summary: str
    location: str
    description: str
    url: str

    def to_ics(self) -> str:
        """Return the file's content, with CRLF line endings."""
        lines = [
            "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//venuebox//guest//EN", "CALSCALE:GREGORIAN",
            "METHOD:PUBLISH", "BEGIN:VEVENT",
            f"UID:{self.reservation.id}",
            f"DTSTAMP:{_utc(self.reservation.updated_at)}",
            f"SEQUENCE:{self.reservation.version}",
            *self._when(),
            f"STATUS:{_STATES.get(self.reservation.status, 'TENTATIVE')}",
            f"SUMMARY:{_text(self.summary)}",
            f"LOCATION:{_text(self.location)}",
            f"DESCRIPTION:{_text(self.description)}",
            f"URL:{self.url}",
            "END:VEVENT", "END:VCALENDAR",
        ]  # fmt: skip
        return "".join(_fold(line) + "\r\n" for line in lines)

    def _when(self) -> tuple[str, str]:
        if self.hours is None:
            following = self.day + timedelta(days=1)
            return f"DTSTART;VALUE=DATE:{self.day:%Y%m%d}", f"DTEND;VALUE=DATE:{following:%Y%m%d}"
        starts, ends = (_utc(minute_of(self.day, at, self.zone)) for at in self.hours)
        return f"DTSTART:{starts}", f"DTEND:{ends}"


def hours_of(
    reservation: Reservation, slots: tuple[Slot, ...], evening_ends_at: str
) -> tuple[int, int] | None:
    """Return the reservation's (start, end) in minutes after midnight: its slot, or all slots.

    None for a whole evening without slots.
    """
    if reservation.slot is not None:
        return reservation.starts, reservation.ends
    return evening_hours(slots, date.fromisoformat(reservation.date), evening_ends_at)


def evening_hours(
    slots: tuple[Slot, ...], day: date, evening_ends_at: str
) -> tuple[int, int] | None:
    """Return (start of the first slot, end of the last slot) on `day`, in minutes, or None."""
    weekday = day_of_week(day)
    offered = [interval(slot, evening_ends_at) for slot in slots if weekday in slot.days_of_week]
    if not offered:
        return None
    return min(start for start, _ in offered), max(end for _, end in offered)


def minute_of(day: date, minutes: int, zone: ZoneInfo) -> int:
    """Return the ms since 1970 of `minutes` after midnight of `day`, in venue local time."""
    local = datetime(day.year, day.month, day.day) + timedelta(minutes=minutes)  # noqa: DTZ001 - the zone follows
    return round(local.replace(tzinfo=zone).timestamp() * 1000)


def _utc(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y%m%dT%H%M%SZ}"


def _text(value: str) -> str:
    """Format a TEXT value: escape special characters, and remove control characters."""
    escaped = value.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    lines = escaped.splitlines()
    return "\\n".join("".join(c for c in line if c.isprintable() or c == " ") for line in lines)


def _fold(line: str) -> str:
    """Fold a content line into pieces of at most 75 octets, without splitting a character."""
    pieces, piece, room = [], "", _LINE_OCTETS
    for character in line:
        size = len(character.encode())
        if size > room:
            pieces.append(piece)
            piece, room = "", _LINE_OCTETS - 1  # a continuation starts with a space
        piece += character
        room -= size
    return "\r\n ".join([*pieces, piece])
