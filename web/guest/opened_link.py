"""What a guest's link opens: rows of one snapshot, or nothing."""

from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from appliance.environment import Environment
from appliance.model.evening import tonight
from appliance.model.guest_terms import cancel_deadline, evening_is_over
from appliance.model.reservation import Reservation
from appliance.model.venue import Slot, Table, Venue
from appliance.store.claims import has_asked_for_erasure, is_claimed, list_claimed
from appliance.store.connection import Reader
from appliance.store.guest_passes import pass_text
from appliance.store.reservations import find_reservation
from appliance.store.venue import find_table, get_venue, list_slots

_SHOWN_FOR = timedelta(days=60)  # after its evening, among "my reservations"


@dataclass(frozen=True, slots=True)
class OpenedLink:
    """One reservation and everything its pages say about it.

    `guest_pass` is the text of the QR code, None once the table was freed. `cancel_until` is
    when a guest can cancel no more; `is_over` tells that its evening has ended.
    """

    reservation: Reservation
    table: Table
    venue: Venue
    slots: tuple[Slot, ...]
    zone: ZoneInfo
    tonight: date
    guest_pass: str | None
    cancel_until: int
    may_cancel: bool
    is_alive: bool
    is_over: bool
    asked_for_erasure: bool

    @property
    def day(self) -> date:
        """The evening."""
        return date.fromisoformat(self.reservation.date)


def find_opened(reader: Reader, environment: Environment, reservation_id: str) -> OpenedLink | None:
    """What a link to that reservation opens; None when there is none or it has expired."""
    opened = _open(reader, environment, reservation_id)
    return opened if opened is not None and opened.is_alive else None


def find_kept(
    reader: Reader, environment: Environment, device_hash: bytes, reservation_id: str
) -> OpenedLink | None:
    """A reservation that this browser keeps, also once its links have expired."""
    if not is_claimed(reader, device_hash, reservation_id):
        return None
    return _open(reader, environment, reservation_id)


def list_kept(reader: Reader, environment: Environment, device_hash: bytes) -> list[OpenedLink]:
    """What a browser keeps: what is to come, the nearest first, then what has been."""
    found = [_open(reader, environment, id_) for id_ in list_claimed(reader, device_hash)]
    shown = [one for one in found if one and one.day >= one.tonight - _SHOWN_FOR]
    coming = [one for one in shown if not one.is_over]
    return [*reversed(coming), *(one for one in shown if one.is_over)]


def _open(reader: Reader, environment: Environment, reservation_id: str) -> OpenedLink | None:
    found = find_reservation(reader, reservation_id)
    table = find_table(reader, found.table_id) if found else None
    if found is None or table is None:
        return None
    venue, slots, now = get_venue(reader), tuple(list_slots(reader)), reader.now
    zone = reader.zones.zone(venue.time_zone)
    hours = environment.settings.guest.cancel_hours
    until = cancel_deadline(found, slots, venue, zone, hours)
    is_open = found.holds and found.status != "completed" and found.checked_in_at is None
    return OpenedLink(
        reservation=found,
        table=table,
        venue=venue,
        slots=slots,
        zone=zone,
        tonight=tonight(now, zone, venue.evening_ends_at),
        guest_pass=(
            pass_text(reader, environment.keyring, environment.name, found) if found.holds else None
        ),
        cancel_until=until,
        may_cancel=is_open and now < until,
        is_alive=now < found.link_expires_at,
        is_over=evening_is_over(found, venue, zone, now),
        asked_for_erasure=has_asked_for_erasure(reader, reservation_id),
    )
