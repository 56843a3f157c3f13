"""The guest pass of a stored reservation, signed afresh each time it is shown."""

from datetime import date

from appliance.model.guest_pass import VERSIONS, GuestPass, encode_pass, venue_tag
from appliance.model.reservation import Reservation
from appliance.store.connection import Reader
from appliance.store.signing_keys import get_signing_key
from appliance.tokens import Keyring


def pass_text(
    reader: Reader, keyring: Keyring, environment_name: str, reservation: Reservation
) -> str:
    """The text of the reservation's QR code, by the key that signs at present."""
    kid, private_key = get_signing_key(reader, keyring)
    return encode_pass(
        guest_pass_of(reservation, environment_name, get_venue_tag(reader), kid), private_key
    )


def guest_pass_of(
    reservation: Reservation, environment_name: str, tag: bytes, kid: int
) -> GuestPass:
    """What the reservation's pass says, not yet signed."""
    evening = date.fromisoformat(reservation.date)
    return GuestPass(
        VERSIONS[environment_name], kid, tag, reservation.pass_id, evening,
        reservation.slot, reservation.guests, reservation.generation,
    )  # fmt: skip


def get_venue_tag(reader: Reader) -> bytes:
    """The tag that every pass of this venue carries."""
    return venue_tag(str(reader.value("SELECT id FROM venue")))
