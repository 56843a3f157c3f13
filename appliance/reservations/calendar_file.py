"""A reservation as a calendar file (RFC 5545), its times in UTC by the venue's zone rules."""

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

    The same reservation is the same event wherever it is written: a later state of it, with
    a higher SEQUENCE, takes the place of the one before.
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
        """The file, with CRLF at the end of each line."""
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
    """When its guests are expected, in minutes after midnight: its slot, or the evening's slots.

    None for a whole evening on which the venue offers no slot.
    """
    if reservation.slot is not None:
        return reservation.starts, reservation.ends
    return evening_hours(slots, date.fromisoformat(reservation.date), evening_ends_at)


def evening_hours(
    slots: tuple[Slot, ...], day: date, evening_ends_at: str
) -> tuple[int, int] | None:
    """Minutes after midnight from the first slot of that weekday to the end of the last."""
    weekday = day_of_week(day)
    offered = [interval(slot, evening_ends_at) for slot in slots if weekday in slot.days_of_week]
    if not offered:
        return None
    return min(start for start, _ in offered), max(end for _, end in offered)


def minute_of(day: date, minutes: int, zone: ZoneInfo) -> int:
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
