"""What a letter tells: read from the reservation as it is now, not as it was when queued."""

from dataclasses import dataclass
from datetime import date
from zoneinfo import ZoneInfo

from appliance.environment import Environment
from appliance.model.calendar_entry import hours_of
from appliance.model.evening import evening_end
from appliance.model.letter import UNASKED, Letter
from appliance.model.reservation import Reservation
from appliance.model.venue import Venue
from appliance.store.connection import Reader
from appliance.store.guest_passes import pass_text
from appliance.store.history import sum_payments
from appliance.store.letters import get_letter, was_written_to
from appliance.store.reservations import get_reservation
from appliance.store.venue import find_table, get_venue, list_slots

# In which states of its reservation a letter is still true.
_TRUE_OF = {
    "confirmation": {"confirmed", "completed", "pending", "partial", "requested"},
    "requested": {"requested"},
    "accepted": {"confirmed", "completed"},
    "declined": {"declined"},
    "cancelled": {"cancelled"},
    "reminder": {"confirmed"},
    "payment_due": {"pending", "partial"},
}


@dataclass(frozen=True, slots=True)
class Contents:
    """A letter with all that it speaks of. `at` is its date, in ms since 1970.

    `hours` are minutes after midnight; None where the venue offers no slot that day. Amounts
    are whole currency units. `stop_url` is there where a guest may want no more of its kind,
    `undo_url` where there is something to cancel.
    """

    letter: Letter
    reservation: Reservation
    venue: Venue
    pass_text: str
    access_url: str
    undo_url: str | None
    stop_url: str | None
    zone: ZoneInfo
    hours: tuple[int, int] | None
    minimum_spend: int
    received: int
    at: int
    evening_is_over: bool
    was_written_to: bool

    @property
    def moot(self) -> str | None:
        """Why this letter must not be sent any more, or None."""
        if self.letter.recipient is None:
            return "the address was erased"
        if self.reservation.status not in _TRUE_OF[self.letter.kind]:
            return f"the reservation is {self.reservation.status}"
        if self.letter.kind == "cancelled" and not self.was_written_to:
            return "the guest was never told of this reservation"
        if self.evening_is_over:
            return "the evening is over"
        return None


def read_contents(reader: Reader, environment: Environment, letter_id: str) -> Contents:
    """The contents of that letter; NotFound when there is none."""
    letter = get_letter(reader, letter_id)
    reservation = get_reservation(reader, letter.reservation_id)
    venue = get_venue(reader)
    day, zone = date.fromisoformat(reservation.date), reader.zones.zone(venue.time_zone)
    now = reader.now
    token = environment.keyring.access_token(reservation.id)
    table = find_table(reader, reservation.table_id)
    return Contents(
        letter=letter,
        reservation=reservation,
        venue=venue,
        pass_text=pass_text(reader, environment.keyring, environment.name, reservation),
        access_url=environment.links.access(token),
        undo_url=(
            environment.links.undo(environment.keyring.claim_token(reservation.id))
            if reservation.holds
            else None
        ),
        stop_url=environment.links.no_reminders(token) if letter.kind in UNASKED else None,
        zone=zone,
        hours=hours_of(reservation, tuple(list_slots(reader)), venue.evening_ends_at),
        minimum_spend=table.minimum_spend if table else 0,
        received=sum_payments(reader, reservation.id),
        at=now if letter.state == "waiting" else letter.sent_at or letter.created_at,
        evening_is_over=now >= evening_end(day, zone, venue.evening_ends_at),
        was_written_to=was_written_to(reader, reservation.id),
    )
