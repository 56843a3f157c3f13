"""Signing keys of guest passes. One key signs; older keys still verify; keys are rotated."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.core.errors import OperatorError
from appliance.core.tokens import Keyring
from appliance.database.connection import Reader, Transaction
from appliance.door.guest_pass import VERSIONS, GuestPass, encode_pass, venue_tag
from appliance.outbox import SigningKeyChanged
from appliance.reservations.model import LAST_GENERATION, Reservation
from appliance.reservations.rows import get_reservation, update_reservation
from appliance.staff.audit_log import CONSOLE, record_audit
from appliance.venue.rows import find_tonight, list_future_reservations

_KEY_IDS = 256
_VALID_AFTER_LAST_PASS_MS = 2 * 24 * 3600 * 1000
# A retired key may have signed passes for any reservation that existed by then.
_VERIFIES = """(leaked_at IS NULL AND (retired_at IS NULL OR EXISTS (
    SELECT 1 FROM reservation WHERE date >= :oldest AND created_at <= retired_at)))"""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key for terminals: 32 bytes of Ed25519, which verify passes with this key id."""

    kid: int
    public_key: bytes


@dataclass(frozen=True, slots=True)
class KeyAge:
    """A signing key for lists. Times are in ms since 1970."""

    kid: int
    created_at: int
    retired_at: int | None
    leaked_at: int | None
    verifies: bool


def add_signing_key(tx: Transaction, keyring: Keyring) -> int:
    """Create a new signing key and retire the previous one. Returns the key id."""
    last = tx.value("SELECT kid FROM signing_key ORDER BY created_at DESC, kid DESC LIMIT 1")
    kid = 1 if last is None else (int(last) + 1) % _KEY_IDS
    raw = tx.tokens.random_bytes(32)
    private_key = Ed25519PrivateKey.from_private_bytes(raw)
    tx.execute("UPDATE signing_key SET retired_at = :now WHERE retired_at IS NULL", {"now": tx.now})
    tx.execute("DELETE FROM signing_key WHERE kid = :kid", {"kid": kid})  # ids wrap around
    tx.insert(
        "signing_key",
        {"kid": kid, "public_key": private_key.public_key().public_bytes_raw(),
         "created_at": tx.now, "private_key": keyring.wrap(raw, tx.tokens.random_bytes(12))},
    )  # fmt: skip
    return kid


def get_signing_key(reader: Reader, keyring: Keyring) -> tuple[int, Ed25519PrivateKey]:
    """Return (id, key) of the signing key. Raises OperatorError if it is missing or unreadable."""
    row = reader.row("SELECT kid, private_key FROM signing_key WHERE retired_at IS NULL")
    if row is None:
        raise OperatorError("there is no signing key for guest passes: the box was not initialised")
    return row[0], _open_key(keyring, row[1])


def find_first_instant(reader: Reader) -> int | None:
    """Return the time of the first key, and so of the box's creation, in ms since 1970, or None."""
    created_at: int | None = reader.value("SELECT min(created_at) FROM signing_key")
    return created_at


def find_verifying_key(
    reader: Reader, keyring: Keyring, kid: int
) -> tuple[Ed25519PrivateKey, bool] | None:
    """Return (key, whether it has leaked) for a key id, or None if unknown or no longer valid.

    A key is valid until two days after its last pass. Passes of a leaked key are not valid. The
    box verifies a pass by signing it again, which takes a third of the time. Terminals cannot,
    because they have only public keys. Raises OperatorError as `get_signing_key` does.
    """
    sql = f"""SELECT private_key, leaked_at IS NOT NULL FROM signing_key
              WHERE kid = :kid AND (leaked_at IS NOT NULL OR {_VERIFIES})"""  # noqa: S608
    row = reader.row(sql, {"kid": kid, "oldest": _oldest(reader)})
    return None if row is None else (_open_key(keyring, row[0]), bool(row[1]))


def list_key_ages(reader: Reader) -> list[KeyAge]:
    """Return all keys, the signing one first."""
    sql = f"""SELECT kid, created_at, retired_at, leaked_at, {_VERIFIES} FROM signing_key
              ORDER BY retired_at IS NOT NULL, retired_at DESC, kid"""  # noqa: S608
    rows = reader.rows(sql, {"oldest": _oldest(reader)})
    return [KeyAge(*(*columns, bool(verifies))) for *columns, verifies in rows]


def list_public_keys(reader: Reader) -> list[PublicKey]:
    """Return all public keys that verify at present, the signing one first."""
    sql = f"""SELECT kid, public_key FROM signing_key WHERE {_VERIFIES}
              ORDER BY retired_at IS NOT NULL, retired_at DESC, kid"""  # noqa: S608
    return [PublicKey(*row) for row in reader.rows(sql, {"oldest": _oldest(reader)})]


def _open_key(keyring: Keyring, wrapped: bytes) -> Ed25519PrivateKey:
    try:
        return keyring.open_signing_key(wrapped)
    except ValueError:
        raise OperatorError(
            "the guest pass key cannot be decrypted: secrets/master.key is from another box"
        ) from None


def _oldest(reader: Reader) -> str:
    """Return the first evening whose passes keep a retired key valid (YYYY-MM-DD)."""
    seconds = (reader.now - _VALID_AFTER_LAST_PASS_MS) / 1000
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def pass_text(
    reader: Reader, keyring: Keyring, environment_name: str, reservation: Reservation
) -> str:
    """Return the text of the reservation's QR code, signed with the present key."""
    kid, private_key = get_signing_key(reader, keyring)
    guest_pass = guest_pass_of(reservation, environment_name, get_venue_tag(reader), kid)
    return encode_pass(guest_pass, private_key)


def guest_pass_of(
    reservation: Reservation, environment_name: str, tag: bytes, kid: int
) -> GuestPass:
    """Return the unsigned content of the reservation's pass."""
    evening = date.fromisoformat(reservation.date)
    return GuestPass(
        VERSIONS[environment_name], kid, tag, reservation.pass_id, evening,
        reservation.slot, reservation.guests, reservation.generation,
    )  # fmt: skip


def get_venue_tag(reader: Reader) -> bytes:
    """Return the tag that every pass of this venue contains."""
    return venue_tag(str(reader.value("SELECT id FROM venue")))


def rotate_signing_key(
    tx: Transaction, keyring: Keyring, *, leaked: bool = False, actor: str = CONSOLE
) -> int:
    """Create a new signing key. Returns its id. Existing passes stay valid unless `leaked`.

    If `leaked`, all older keys become invalid, and each future reservation gets a pass of the
    next generation, which its link shows at once. Older passes are `revoked`.
    """
    kid = add_signing_key(tx, keyring)
    tx.notices.append(SigningKeyChanged())
    record_audit(tx, actor, "signing_key_rotated", kid=kid, leaked=leaked)
    if leaked:
        sql = """UPDATE signing_key SET leaked_at = :now
                 WHERE retired_at IS NOT NULL AND leaked_at IS NULL"""
        tx.execute(sql, {"now": tx.now})
        for coming in list_future_reservations(tx, find_tonight(tx).isoformat()):
            generation = get_reservation(tx, coming.id).generation + 1
            update_reservation(tx, coming.id, generation=min(generation, LAST_GENERATION))
    return kid
