"""Keys that sign guest passes. One key signs new passes, and older keys still verify old passes."""

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
# A retired key may have signed passes for any reservation that existed when it was retired.
_VERIFIES = """(leaked_at IS NULL AND (retired_at IS NULL OR EXISTS (
    SELECT 1 FROM reservation WHERE date >= :oldest AND created_at <= retired_at)))"""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The Ed25519 public key (32 bytes) that terminals use to verify passes with this key id."""

    kid: int
    public_key: bytes


@dataclass(frozen=True, slots=True)
class KeyAge:
    """A signing key's times, in ms since 1970, and whether passes signed with it are valid."""

    kid: int
    created_at: int
    retired_at: int | None
    leaked_at: int | None
    verifies: bool


def add_signing_key(tx: Transaction, keyring: Keyring) -> int:
    """Create a new signing key, retire the previous key and return the new key's id."""
    last = tx.value("SELECT kid FROM signing_key WHERE retired_at IS NULL")
    kid = 1 if last is None else (int(last) + 1) % _KEY_IDS
    raw = tx.tokens.random_bytes(32)
    private_key = Ed25519PrivateKey.from_private_bytes(raw)
    tx.execute("UPDATE signing_key SET retired_at = :now WHERE retired_at IS NULL", {"now": tx.now})
    # Key ids are reused after 255, so delete an old key with this id.
    tx.execute("DELETE FROM signing_key WHERE kid = :kid", {"kid": kid})
    tx.insert(
        "signing_key",
        {"kid": kid, "public_key": private_key.public_key().public_bytes_raw(),
         "created_at": tx.now, "private_key": keyring.wrap(raw, tx.tokens.random_bytes(12))},
    )  # fmt: skip
    return kid


def get_signing_key(reader: Reader, keyring: Keyring) -> tuple[int, Ed25519PrivateKey]:
    """Return (key id, private key) of the current signing key.

    Raises OperatorError if there is none or it cannot be decrypted.
    """
    row = reader.row("SELECT kid, private_key FROM signing_key WHERE retired_at IS NULL")
    if row is None:
        raise OperatorError(
            "there is no signing key for guest passes, because the box is not initialised"
        )
    return row[0], _open_key(keyring, row[1])


def find_first_instant(reader: Reader) -> int | None:
    """Return when the first signing key was created (ms since 1970), or None if there is none.

    The first key is created together with the box, so this is also when the box was created.
    """
    created_at: int | None = reader.value("SELECT min(created_at) FROM signing_key")
    return created_at


def find_verifying_key(
    reader: Reader, keyring: Keyring, kid: int
) -> tuple[Ed25519PrivateKey, bool] | None:
    """Return (private key, whether it has leaked) for a key id.

    Return None if the id is unknown or the key has expired. A retired key expires two days after
    the evening of its last pass. Passes signed with a leaked key are not valid. The result is the
    private key, because the box verifies a pass by signing it again. That takes a third of the time
    of a verification with the public key. Raises OperatorError if the key cannot be decrypted.
    """
    sql = f"""SELECT private_key, leaked_at IS NOT NULL FROM signing_key
              WHERE kid = :kid AND (leaked_at IS NOT NULL OR {_VERIFIES})"""  # noqa: S608
    row = reader.row(sql, {"kid": kid, "oldest": _oldest(reader)})
    return None if row is None else (_open_key(keyring, row[0]), bool(row[1]))


def list_key_ages(reader: Reader) -> list[KeyAge]:
    """Return all keys, starting with the current signing key."""
    sql = f"""SELECT kid, created_at, retired_at, leaked_at, {_VERIFIES} FROM signing_key
              ORDER BY retired_at IS NOT NULL, retired_at DESC, kid"""  # noqa: S608
    rows = reader.rows(sql, {"oldest": _oldest(reader)})
    return [KeyAge(*(*columns, bool(verifies))) for *columns, verifies in rows]


def list_public_keys(reader: Reader) -> list[PublicKey]:
    """Return all public keys whose passes are valid, starting with the current signing key."""
    sql = f"""SELECT kid, public_key FROM signing_key WHERE {_VERIFIES}
              ORDER BY retired_at IS NOT NULL, retired_at DESC, kid"""  # noqa: S608
    return [PublicKey(*row) for row in reader.rows(sql, {"oldest": _oldest(reader)})]


def _open_key(keyring: Keyring, wrapped: bytes) -> Ed25519PrivateKey:
    try:
        return keyring.open_signing_key(wrapped)
    except ValueError:
        raise OperatorError(
            "the key for guest passes cannot be decrypted, because secrets/master.key is from "
            "another box. Restore this box's master.key."
        ) from None


def _oldest(reader: Reader) -> str:
    """Return the date (YYYY-MM-DD) of the earliest evening for which retired keys stay valid."""
    seconds = (reader.now - _VALID_AFTER_LAST_PASS_MS) / 1000
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def pass_text(
    reader: Reader, keyring: Keyring, environment_name: str, reservation: Reservation
) -> str:
    """Return the text for the reservation's QR code, signed with the current key."""
    kid, private_key = get_signing_key(reader, keyring)
    guest_pass = guest_pass_of(reservation, environment_name, get_venue_tag(reader), kid)
    return encode_pass(guest_pass, private_key)


def guest_pass_of(
    reservation: Reservation, environment_name: str, tag: bytes, kid: int
) -> GuestPass:
    """Return the content of the reservation's guest pass, without a signature."""
    evening = date.fromisoformat(reservation.date)
    return GuestPass(
        VERSIONS[environment_name], kid, tag, reservation.pass_id, evening,
        reservation.slot, reservation.guests, reservation.generation,
    )  # fmt: skip


def get_venue_tag(reader: Reader) -> bytes:
    """Return the venue's tag, which all its guest passes contain."""
    return venue_tag(str(reader.value("SELECT id FROM venue")))


def rotate_signing_key(
    tx: Transaction, keyring: Keyring, *, leaked: bool = False, actor: str = CONSOLE
) -> int:
    """Create a new signing key and return its id.

    Existing passes stay valid unless `leaked` is True. If `leaked` is True, all older keys become
    invalid. Each future reservation then gets a new pass, which its link shows at once, and
    check-in refuses its older passes as `revoked`.
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
