"""Guest passes, access codes and signing keys: encoding, signatures, and tolerant decoding.

One key signs new passes, and older keys still verify old passes.

A keyboard-wedge scanner acts as a US keyboard and sends key codes. On a host with another keyboard
layout, these key codes produce other characters. `spellings` restores the original text.
"""

import base64
import hashlib
import hmac
import re
import string
import struct
import unicodedata
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import combinations, islice, pairwise, product
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct

from appliance.core.errors import OperatorError
from appliance.core.text import plain_dashes, western_digits
from appliance.core.tokens import Keyring
from appliance.database.connection import Reader, Transaction
from appliance.outbox import SigningKeyChanged
from appliance.reservations.model import LAST_GENERATION, Reservation
from appliance.reservations.rows import get_reservation, update_reservation
from appliance.staff.audit_log import CONSOLE, record_audit
from appliance.venue.clashes import list_future_reservations
from appliance.venue.model import (
    find_tonight,
    minutes,
)

# These tables contain letters in upper case only, because `spellings` converts the scanned text to
# upper case first.
_AZERTY_DIGITS = {
    "&": "1", "É": "2", '"': "3", "'": "4", "(": "5", "-": "6", "§": "6", "È": "7", "_": "8",
    "!": "8", "Ç": "9", "À": "0",
}  # fmt: skip
_AZERTY = str.maketrans(
    _AZERTY_DIGITS | {"A": "Q", "Q": "A", "Z": "W", "W": "Z", "?": "M", ",": "M"}
)
_QWERTZ = str.maketrans("YZ", "ZY")

_ARABIC_INDIC_DIGITS = dict(zip("٠١٢٣٤٥٦٧٨٩", "0123456789", strict=True))
_ARABIC_LETTERS = (
    # characters typed without Shift
    dict(zip("ضصثقفغعهخحشسيبلاتنمئءؤرىة", "QWERTYUIOPASDFGHJKLZXCVNM", strict=True))
    # characters typed with Shift, by keyboard row
    | {"\u064e": "Q", "\u064b": "W", "\u064f": "E", "\u064c": "R", "إ": "Y", "‘": "U", "`": "U"}
    | {"÷": "I", "×": "O", "؛": "P", "\u0650": "A", "\u064d": "S", "]": "D", "[": "F", "أ": "H"}
    | {"ـ": "J", "،": "K", "/": "L", "~": "Z", "\u0652": "X", "}": "C", "{": "V", "آ": "N"}
    | {"’": "M"}
    # lam with alef: one key types both letters as a single character
    | {"\ufefb": "B", "\ufef5": "B", "\ufef7": "G", "\ufef9": "T"}
)  # fmt: skip
_ARABIC = str.maketrans(_ARABIC_LETTERS | _ARABIC_INDIC_DIGITS | {"'": "M"})
_ARABIC_AZERTY = str.maketrans(_ARABIC_LETTERS | _ARABIC_INDIC_DIGITS | _AZERTY_DIGITS)
_SHIFTED_PAIRS = {"لإ": "T", "لأ": "G", "لآ": "B"}
_PAIR = "لا"  # typed with the key B, or with G followed by H
_MOST_GUESSES = 128


def spellings(text: str, length: int) -> Iterator[str]:
    """Yield the texts of `length` characters that the scanner may have sent, most likely first.

    They are in upper case and without white space. The supported keyboard layouts of the host are
    US, French AZERTY and German QWERTZ, with or without Caps Lock, and Arabic with Arabic,
    European or AZERTY digits.
    """
    typed = "".join(text.split()).upper()
    if len(typed) == length:
        yield typed
        yield typed.translate(_AZERTY)
        yield typed.translate(_QWERTZ)
    if not typed.isascii():
        yield from _arabic(typed, length)


def _arabic(typed: str, length: int) -> Iterator[str]:
    for pair, key in _SHIFTED_PAIRS.items():
        typed = typed.replace(pair, key)
    for guess in islice(_replace_pairs(typed, length), _MOST_GUESSES):
        yield from dict.fromkeys(guess.translate(keys) for keys in (_ARABIC, _ARABIC_AZERTY))


def _replace_pairs(typed: str, length: int) -> Iterator[str]:
    """Replace occurrences of `_PAIR` in `typed` with `B`, so that `length` characters are left.

    Yield the result for each possible choice of occurrences.
    """
    pieces = typed.split(_PAIR)
    keys = len(typed) - length
    if not 0 <= keys < len(pieces):
        return
    for chosen in map(frozenset, combinations(range(1, len(pieces)), keys)):
        yield pieces[0] + "".join(
            ("B" if n in chosen else _PAIR) + pieces[n] for n in range(1, len(pieces))
        )


_CODE_FORM = re.compile(r"(?:SVC)?([0-9A-Z]{4})")
_CODE_MAX = 40  # maximum length of an access code with the text around it
_FRAMED_CODE = re.compile(r"SVC-([0-9A-Z]{4})")
_SEPARATORS = re.compile(r"[\s._-]+")
# Some scanners send this before each code. It names the type of the code: `]Q1` for a QR code.
_AIM_IDENTIFIER = re.compile(r"^\][A-Za-z][0-9A-Za-z]")
# Maps a typed character to the characters of ACCESS_CODE_ALPHABET that may have been meant.
_LOOKALIKES = {
    "0": "QD", "O": "QD", "Q": "QD", "D": "DQ", "1": "J7", "I": "J7", "L": "J7",
    "2": "2Z", "Z": "Z2", "5": "5S", "S": "S5", "6": "6G", "G": "G6", "8": "8B", "B": "B8",
    "U": "UV", "V": "VU",
}  # fmt: skip


def parse_access_code(text: str) -> str | None:
    """Return the access code in the stored form, `SVC-XXXX`, or None if `text` is not a code."""
    if len(text) > _CODE_MAX:
        return None
    match = _CODE_FORM.fullmatch(_SEPARATORS.sub("", _read_code(text)))
    return f"SVC-{match[1]}" if match else None


def find_access_code(text: str) -> str | None:
    """Return the access code in a scanned text, which may have other text around it."""
    match = _FRAMED_CODE.search(_read_code(text))
    return f"SVC-{match[1]}" if match else None


def _read_code(text: str) -> str:
    typed = plain_dashes(western_digits(drop_unseen(text)))
    return _AIM_IDENTIFIER.sub("", typed).strip(string.punctuation).upper()


def drop_unseen(text: str) -> str:
    """Return `text` with invisible characters removed and a blank for each control character."""
    if text.isascii() and text.isprintable():
        return text.strip()
    kinds = ((c, unicodedata.category(c)) for c in text)
    return "".join(" " if kind == "Cc" else c for c, kind in kinds if kind != "Cf").strip()


def lookalikes(access_code: str) -> list[str]:
    """Return the other access codes that can be confused with `access_code`."""
    choices = (_LOOKALIKES.get(letter, letter) for letter in access_code[4:])
    codes = (f"SVC-{''.join(letters)}" for letters in product(*choices))
    return [code for code in codes if code != access_code]


PREFIX = "SVC1"
VERSIONS = {"live": 0x01, "test": 0x81}
MOST_GUESTS = 255
TEXT_LENGTH = 139
_MOST_PREFIXES = 4  # maximum number; a scanner sends a code once or twice
# The prefix as each layout of `spellings` types it.
_TYPED_PREFIX = re.compile("(?:SVC|سرؤ|\u064d{})[1&١]")
_CONTEXT = b"svc-guest-pass-v1"
_FIRST_DAY = date(2020, 1, 1)
_WHOLE_EVENING = 0xFFFF
# Fields: version, key id, venue tag, pass id, evening, slot, guests, generation
_SIGNED = struct.Struct(">BB4s8sHHBB")
_MINUTES_A_DAY = 24 * 60
_LENGTH = _SIGNED.size + 64  # bytes of a decoded pass: the signed part and the signature
_PADDING_BITS = 3
# Maps the base 32 digits of RFC 4648 to those of `int(text, 32)`, which is much faster than
# `base64.b32decode`.
_RADIX_32 = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHIJKLMNOPQRSTUV")
_PASS_FORM = re.compile(r"SVC1[A-Z2-7]{135}")
_LAST = frozenset("AIQY")  # the last three bits are padding and are 0


class GuestPass(Struct, frozen=True):
    """The content of a pass. If `slot` is None, the pass is for the whole evening."""

    version: int
    kid: int
    venue_tag: bytes
    pass_id: bytes
    evening: date
    slot: str | None
    guests: int
    generation: int

    def to_bytes(self) -> bytes:
        """Return the 20 bytes to sign. Guest counts above 255 are encoded as 255."""
        slot = _WHOLE_EVENING if self.slot is None else minutes(self.slot)
        days, guests = (self.evening - _FIRST_DAY).days, min(self.guests, MOST_GUESTS)
        return _SIGNED.pack(
            self.version, self.kid, self.venue_tag, self.pass_id, days, slot, guests,
            self.generation,
        )  # fmt: skip


class ReadPass(Struct, frozen=True):
    """A decoded pass. Its content is untrusted until the signature is verified."""

    guest_pass: GuestPass
    signed: bytes
    signature: bytes

    def is_signed_by(self, public_key: bytes) -> bool:
        """Whether the signature is valid for this Ed25519 public key (32 bytes).

        Takes about 0.1 ms.
        """
        return is_signed(public_key, self.signature, _CONTEXT + self.signed)

    def is_signed_with(self, private_key: Ed25519PrivateKey) -> bool:
        """Whether this key signed the pass.

        Signs the pass again and compares the two signatures. This works because Ed25519 signatures
        are deterministic.
        """
        return hmac.compare_digest(private_key.sign(_CONTEXT + self.signed), self.signature)


def is_signed(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` of `message` is valid for this Ed25519 public key (32 bytes)."""
    key = Ed25519PublicKey.from_public_bytes(public_key)
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def venue_tag(venue_id: str) -> bytes:
    """Return the first 4 bytes of the SHA-256 of the venue id's 16 bytes."""
    return hashlib.sha256(UUID(venue_id).bytes).digest()[:4]


def encode_pass(guest_pass: GuestPass, private_key: Ed25519PrivateKey) -> str:
    """Return the text for the QR code: 139 characters from the QR alphanumeric set."""
    signed = guest_pass.to_bytes()
    raw = signed + private_key.sign(_CONTEXT + signed)
    return PREFIX + base64.b32encode(raw).decode().rstrip("=")


def decode_pass(text: str) -> ReadPass | None:
    """Return the most likely pass in `text`, or None. Does not verify its signature."""
    return next(decode_passes(text), None)


def decode_passes(text: str) -> Iterator[ReadPass]:
    """Iterate over the passes that `text` may contain, most likely first.

    The signatures are not verified. Lower case, white space, the keyboard layouts in `spellings`
    and what scanners send before and after a code are tolerated.
    """
    return filter(None, map(_decode, _find_forms(text)))


def is_pass(text: str) -> bool:
    """Whether `text` contains a whole pass, in any keyboard layout of `spellings`.

    It may be forged, or damaged in single characters.
    """
    return next(_find_forms(text), None) is not None


def resembles_pass(text: str) -> bool:
    """Whether `text` contains the prefix of a pass, in any keyboard layout of `spellings`.

    The rest of the pass may be missing or damaged.
    """
    return _TYPED_PREFIX.search(_without_blanks(text)) is not None


def _find_forms(text: str) -> Iterator[str]:
    """Yield the texts in the form of a pass that `text` may contain, most likely first.

    A pass begins with its prefix, and ends after TEXT_LENGTH characters or before the next prefix.
    """
    read = _without_blanks(text)
    found = islice(_TYPED_PREFIX.finditer(read), _MOST_PREFIXES)
    begins = [match.start() for match in found]
    for begin, end in pairwise([*begins, len(read)]):
        for piece in dict.fromkeys((read[begin : begin + TEXT_LENGTH], read[begin:end])):
            yield from filter(_PASS_FORM.fullmatch, spellings(piece, TEXT_LENGTH))


def _without_blanks(text: str) -> str:
    return "".join(drop_unseen(text).split()).upper()


def _decode(spelling: str) -> ReadPass | None:
    if spelling[-1] not in _LAST:
        return None
    bits = int(spelling[len(PREFIX) :].translate(_RADIX_32), 32) >> _PADDING_BITS
    raw = bits.to_bytes(_LENGTH, "big")
    version, kid, tag, pass_id, days, slot, guests, generation = _SIGNED.unpack_from(raw)
    if version not in VERSIONS.values() or _MINUTES_A_DAY <= slot < _WHOLE_EVENING:
        return None
    evening = _FIRST_DAY + timedelta(days=days)
    start = None if slot == _WHOLE_EVENING else f"{slot // 60:02d}:{slot % 60:02d}"
    guest_pass = GuestPass(version, kid, tag, pass_id, evening, start, guests, generation)
    return ReadPass(guest_pass, raw[: _SIGNED.size], raw[_SIGNED.size :])


_KEY_IDS = 256
_VALID_AFTER_LAST_PASS_MS = 2 * 24 * 3600 * 1000
# A retired key may have signed passes for any reservation that existed when it was retired.
_VERIFIES = """(leaked_at IS NULL AND (retired_at IS NULL OR EXISTS (
    SELECT 1 FROM reservation WHERE date >= :oldest AND created_at <= retired_at)))"""


class SigningKey(Struct, frozen=True):
    """The public part of a signing key, and whether passes signed with the key are valid.

    `public_key` is an Ed25519 public key (32 bytes). Times are in ms since 1970.
    """

    kid: int
    public_key: bytes
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


def find_verifying_key(
    reader: Reader, keyring: Keyring, kid: int
) -> tuple[Ed25519PrivateKey, bool] | None:
    """Return (private key, whether it has leaked) for a key id.

    Return None if the id is unknown or the key has expired. A retired key expires two days after
    the evening of its last pass. Passes signed with a leaked key are not valid. The result is the
    private key, because the box verifies a pass by signing it again, which takes a third of the
    time of verifying with the public key. Raises OperatorError if the key cannot be decrypted.
    """
    sql = f"""SELECT private_key, leaked_at IS NOT NULL FROM signing_key
              WHERE kid = :kid AND (leaked_at IS NOT NULL OR {_VERIFIES})"""  # noqa: S608
    row = reader.row(sql, {"kid": kid, "oldest": _oldest(reader)})
    return None if row is None else (_open_key(keyring, row[0]), bool(row[1]))


def list_signing_keys(reader: Reader) -> list[SigningKey]:
    """Return all keys, starting with the current signing key."""
    sql = f"""SELECT kid, public_key, created_at, retired_at, leaked_at, {_VERIFIES}
              FROM signing_key ORDER BY retired_at IS NOT NULL, retired_at DESC, kid"""  # noqa: S608
    return [
        SigningKey(*(*columns, bool(verifies)))
        for *columns, verifies in reader.rows(sql, {"oldest": _oldest(reader)})
    ]


def list_public_keys(reader: Reader) -> list[SigningKey]:
    """Return the keys whose passes are valid, starting with the current signing key."""
    return [key for key in list_signing_keys(reader) if key.verifies]


def _open_key(keyring: Keyring, wrapped: bytes) -> Ed25519PrivateKey:
    try:
        return keyring.open_signing_key(wrapped)
    except ValueError:
        raise OperatorError(
            "the key for guest passes cannot be decrypted, because secrets/master.key is from "
            "another box. Restore this box's master.key."
        ) from None


def _oldest(reader: Reader) -> str:
    """Return the earliest evening (YYYY-MM-DD) whose reservations keep a retired key valid."""
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
