"""What a letter tells: read from the reservation as it is now, not as it was when queued."""

from dataclasses import dataclass
from datetime import date

from appliance.environment import Environment
from appliance.model.evening import evening_end
from appliance.model.letter import Letter
from appliance.model.reservation import Reservation
from appliance.model.venue import Venue
from appliance.store.connection import Reader
from appliance.store.guest_passes import pass_text
from appliance.store.letters import get_letter
from appliance.store.reservations import get_reservation
from appliance.store.venue import get_venue


@dataclass(frozen=True, slots=True)
class Contents:
    """A letter with all that it speaks of. `at` is its date, in ms since 1970."""

    letter: Letter
    reservation: Reservation
    venue: Venue
    pass_text: str
    access_url: str
    at: int
    evening_is_over: bool

    @property
    def moot(self) -> str | None:
        """Why this letter must not be sent any more, or None."""
        if self.letter.recipient is None:
            return "the address was erased"
        if not self.reservation.holds:
            return f"the reservation is {self.reservation.status}"
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
    return Contents(
        letter=letter,
        reservation=reservation,
        venue=venue,
        pass_text=pass_text(reader, environment.keyring, environment.name, reservation),
        access_url=environment.links.access(environment.keyring.access_token(reservation.id)),
        at=now if letter.state == "waiting" else letter.sent_at or letter.created_at,
        evening_is_over=now >= evening_end(day, zone, venue.evening_ends_at),
    )
