"""The guest pass: the signed text of the QR code (docs/decisions/guest-pass-and-links.md)."""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from appliance.model.evening import minutes
from appliance.model.keyboard_layouts import spellings

PREFIX = "SVC1"
VERSIONS = {"live": 0x01, "test": 0x81}
MOST_GUESTS = 255
LAST_GENERATION = 255
TEXT_LENGTH = 139
_CONTEXT = b"svc-guest-pass-v1"
_FIRST_DAY = date(2020, 1, 1)
_WHOLE_EVENING = 0xFFFF
_SIGNED_BYTES = 20
_MINUTES_A_DAY = 24 * 60
_FORM = re.compile(r"SVC1[A-Z2-7]{134}[AIQY]")  # the last three bits say nothing: they are 0
_PASS_BYTES = 84
_SPARE_BITS = 3  # 135 characters of five bits
_AS_DIGITS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHIJKLMNOPQRSTUV")


@dataclass(frozen=True, slots=True)
class GuestPass:
    """What a pass says. `slot` None is the whole evening; `guests` is capped at 255."""

    version: int
    kid: int
    venue_tag: bytes
    pass_id: bytes
    evening: date
    slot: str | None
    guests: int
    generation: int

    def to_bytes(self) -> bytes:
        """The 20 bytes that are signed."""
        return b"".join(
            (
                bytes((self.version, self.kid)),
                self.venue_tag,
                self.pass_id,
                (self.evening - _FIRST_DAY).days.to_bytes(2, "big"),
                (_WHOLE_EVENING if self.slot is None else minutes(self.slot)).to_bytes(2, "big"),
                bytes((min(self.guests, MOST_GUESTS), self.generation)),
            )
        )


@dataclass(frozen=True, slots=True)
class ReadPass:
    """A pass as it was read, whoever wrote it: nothing in it is true before `is_signed_by`."""

    guest_pass: GuestPass
    signed: bytes
    signature: bytes

    def is_signed_by(self, public_key: bytes) -> bool:
        """Whether the holder of this Ed25519 key (32 bytes) wrote it. Takes some 0.1 ms."""
        key = Ed25519PublicKey.from_public_bytes(public_key)
        try:
            key.verify(self.signature, _CONTEXT + self.signed)
        except InvalidSignature:
            return False
        return True

    def is_signed_with(self, private_key: Ed25519PrivateKey) -> bool:
        """The same, for the holder of the private key: Ed25519 signs the same bytes the same."""
        return hmac.compare_digest(private_key.sign(_CONTEXT + self.signed), self.signature)


def venue_tag(venue_id: str) -> bytes:
    """The first 4 bytes of SHA-256 over the 16 bytes of the venue's id."""
    return hashlib.sha256(UUID(venue_id).bytes).digest()[:4]


def encode_pass(guest_pass: GuestPass, private_key: Ed25519PrivateKey) -> str:
    """The text of the QR code: 139 characters of QR's alphanumeric set."""
    signed = guest_pass.to_bytes()
    raw = signed + private_key.sign(_CONTEXT + signed)
    return PREFIX + base64.b32encode(raw).decode().rstrip("=")


def decode_pass(text: str) -> ReadPass | None:
    """The likeliest pass that `text` spells, or None when it spells none."""
    return next(decode_passes(text), None)


def decode_passes(text: str) -> Iterator[ReadPass]:
    """Every pass that `text` may spell, likeliest first: only a signature can tell.

    Tolerates lower case, white space, and scanners on hosts with another keyboard layout.
    """
    for spelling in spellings(text, TEXT_LENGTH):
        read = _decode(spelling)
        if read is not None:
            yield read


def resembles_pass(text: str) -> bool:
    """Whether `text` begins as ours do, in any layout: a pass, or the ruins of one."""
    start = text.strip()[: len(PREFIX)]
    return any(s.startswith(PREFIX) for s in spellings(start, len(PREFIX)))


def _decode(spelling: str) -> ReadPass | None:
    if not _FORM.fullmatch(spelling):
        return None
    # Python's own decoder of Base32 takes ten times as long; the last three bits say nothing.
    number = int(spelling[len(PREFIX) :].translate(_AS_DIGITS), 32) >> _SPARE_BITS
    raw = number.to_bytes(_PASS_BYTES, "big")
    guest_pass = _parse(raw)
    if guest_pass is None:
        return None
    return ReadPass(guest_pass, raw[:_SIGNED_BYTES], raw[_SIGNED_BYTES:])


def _parse(raw: bytes) -> GuestPass | None:
    slot = int.from_bytes(raw[16:18], "big")
    if raw[0] not in VERSIONS.values() or _MINUTES_A_DAY <= slot < _WHOLE_EVENING:
        return None
    return GuestPass(
        version=raw[0], kid=raw[1], venue_tag=raw[2:6], pass_id=raw[6:14],
        evening=_FIRST_DAY + timedelta(days=int.from_bytes(raw[14:16], "big")),
        slot=None if slot == _WHOLE_EVENING else f"{slot // 60:02d}:{slot % 60:02d}",
        guests=raw[18], generation=raw[19],
    )  # fmt: skip
