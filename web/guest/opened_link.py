"""What a guest's link opens: rows of one snapshot, or nothing."""

from dataclasses import dataclass
from datetime import date
from zoneinfo import ZoneInfo

from appliance.environment import EnvironmentName
from appliance.model.evening import tonight
from appliance.model.reservation import Reservation
from appliance.model.venue import Slot, Table, Venue
from appliance.store.connection import Reader
from appliance.store.guest_passes import pass_text
from appliance.store.reservations import find_reservation
from appliance.store.venue import find_table, get_venue, list_slots
from appliance.tokens import Keyring


@dataclass(frozen=True, slots=True)
class OpenedLink:
    """One reservation and everything its pages say about it.

    `guest_pass` is the text of the QR code, None once the table was freed.
    """

    reservation: Reservation
    table: Table
    venue: Venue
    slots: tuple[Slot, ...]
    zone: ZoneInfo
    tonight: date
    guest_pass: str | None

    @property
    def day(self) -> date:
        """The evening."""
        return date.fromisoformat(self.reservation.date)


def find_opened(
    reader: Reader, keyring: Keyring, environment: EnvironmentName, reservation_id: str | None
) -> OpenedLink | None:
    """What a link to that reservation opens; None when there is none or it has expired."""
    found = find_reservation(reader, reservation_id) if reservation_id else None
    if found is None or found.link_expires_at <= reader.now:
        return None
    table = find_table(reader, found.table_id)
    if table is None:
        return None
    venue = get_venue(reader)
    zone = reader.zones.zone(venue.time_zone)
    return OpenedLink(
        reservation=found,
        table=table,
        venue=venue,
        slots=tuple(list_slots(reader)),
        zone=zone,
        tonight=tonight(reader.now, zone, venue.evening_ends_at),
        guest_pass=pass_text(reader, keyring, environment, found) if found.holds else None,
    )
