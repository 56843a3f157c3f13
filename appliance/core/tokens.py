"""Generation of ids, keys, codes and secrets, and derivation of keys and link tokens."""

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Callable
from typing import Literal
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ACCESS_CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
_MAC_BYTES = 17  # 136 bits; with the 16 of the id, 33 bytes are 44 characters without padding


class Tokens:
    """The source of all random values. Tests inject their own `random_bytes`."""

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self.random_bytes = random_bytes

    def new_id(self, now_ms: int) -> str:
        """Return a UUID version 7: ordered by time, so that index pages fill in order."""
        raw = (now_ms & 0xFFFF_FFFF_FFFF).to_bytes(6, "big") + self.random_bytes(10)
        number = int.from_bytes(raw, "big")
        number = number & ~(0xF << 76) | 0x7 << 76
        number = number & ~(0x3 << 62) | 0x2 << 62
        digits = f"{number:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def new_api_key(self, environment: str) -> str:
        """Return `svc_live_` or `svc_test_` and 48 hex digits: 192 bits (interface, section 5)."""
        return f"svc_{environment}_{self.random_bytes(24).hex()}"

    def new_terminal_token(self) -> str:
        """Return `term_` and 64 hex digits: 256 bits."""
        return f"term_{self.random_bytes(32).hex()}"

    def new_webhook_secret(self) -> str:
        """Return `whsec_` and 256 bits in URL-safe base64 (interface, section 2.8)."""
        return f"whsec_{encode_url_safe(self.random_bytes(32))}"

    def new_link_secret(self) -> str:
        """Return the secret of a one-time link: 256 bits in URL-safe base64."""
        return encode_url_safe(self.random_bytes(32))

    def new_access_code(self) -> str:
        """Return `SVC-` and four unambiguous characters."""
        return f"SVC-{self._letters(4)}"

    def new_recovery_code(self) -> str:
        """Return sixteen unambiguous characters in groups of four: 79 bits."""
        return "-".join(self._letters(4) for _ in range(4))

    def new_pairing_code(self) -> str:
        """Return eight digits, valid once within ten minutes."""
        return f"{int.from_bytes(self.random_bytes(8), 'big') % 10**8:08d}"

    def _letters(self, count: int) -> str:
        letters: list[int] = []
        while len(letters) < count:  # bytes from 248 up would bias towards the first letters
            letters += [b for b in self.random_bytes(8) if b < 8 * len(ACCESS_CODE_ALPHABET)]
        return "".join(ACCESS_CODE_ALPHABET[b % 31] for b in letters[:count])


def encode_url_safe(raw: bytes) -> str:
    """Encode as URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def hash_token(token: str) -> bytes:
    """Return the stored form of a key, token or one-time link: SHA-256 of its UTF-8 bytes.

    Invalid text, such as a header with stray bytes, is hashed too and matches no row.
    """
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def account_hash(name: str) -> bytes:
    """Return the key under which failed sign-ins for `name` are counted; ignores case, spaces."""
    return hash_token(" ".join(name.casefold().split()))


def made_at(made_id: str) -> int:
    """Return the time at which `new_id` made this id, in ms since 1970."""
    return int(made_id.replace("-", "")[:12], 16)


def first_id_of(now_ms: int) -> str:
    """Return a lower bound for the ids that `new_id` makes from `now_ms` (ms since 1970) on."""
    digits = f"{now_ms:012x}"
    return f"{digits[:8]}-{digits[8:]}"


class Keyring:
    """The keys of one environment, one for each purpose, derived from the master key.

    A key reveals nothing about the keys of other purposes or of the other environment.
    """

    def __init__(self, master: bytes, environment: str) -> None:
        """Derive the keys by HKDF-SHA256; `master` is the 32 bytes of `secrets/master.key`."""

        def derive(purpose: str) -> bytes:
            info = f"venuebox {environment} {purpose}".encode()
            return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(master)

        self._access = derive("access link")
        self._claim = derive("claim link")
        self._echo = derive("echo receiver")
        self._device = derive("guest device")
        self._form = derive("booking form")
        self._wrap = AESGCM(derive("wrap"))
        self._signing_keys: dict[bytes, Ed25519PrivateKey] = {}

    def access_token(self, reservation_id: str) -> str:
        """The secret part of `guestAccessUrl`: 44 characters, 136 bits of them a MAC."""
        return _link_token(self._access, b"access", reservation_id)

    def claim_token(self, reservation_id: str) -> str:
        """The secret part of `claimUrl`."""
        return _link_token(self._claim, b"claim", reservation_id)

    def read_access_token(self, token: str) -> str | None:
        """Return the reservation id of `token`, or None if this box did not make it."""
        return _read_link_token(self._access, b"access", token)

    def read_claim_token(self, token: str) -> str | None:
        """As `read_access_token`, for claim links."""
        return _read_link_token(self._claim, b"claim", token)

    def device_token(self, device_id: str) -> str:
        """The token that a guest's browser stores, to find its reservations again."""
        return _link_token(self._device, b"device", device_id)

    def read_device_token(self, token: str) -> str | None:
        """As `read_access_token`, for a device id."""
        return _read_link_token(self._device, b"device", token)

    def form_token(self, form_id: str) -> str:
        """The token of a booking form: its id, which includes the time it was shown."""
        return _link_token(self._form, b"form", form_id)

    def read_form_token(self, token: str) -> str | None:
        """As `read_access_token`, for a form id."""
        return _read_link_token(self._form, b"form", token)

    def echo_token(self, receiver_id: str) -> str:
        """The secret part of an echo receiver's URL in the test environment."""
        return _link_token(self._echo, b"echo", receiver_id)

    def read_echo_token(self, token: str) -> str | None:
        """As `read_access_token`, for echo receivers."""
        return _read_link_token(self._echo, b"echo", token)

    def wrap(self, secret: bytes, nonce: bytes) -> bytes:
        """Encrypt a secret for storage (AES-256-GCM); `nonce` is 12 fresh random bytes."""
        return nonce + self._wrap.encrypt(nonce, secret, None)

    def open_signing_key(self, wrapped: bytes) -> Ed25519PrivateKey:
        """Decrypt a wrapped signing key; cached. ValueError as `unwrap`."""
        if wrapped not in self._signing_keys:
            raw = self.unwrap(wrapped)
            self._signing_keys[wrapped] = Ed25519PrivateKey.from_private_bytes(raw)
        return self._signing_keys[wrapped]

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt a wrapped secret. ValueError if it was not wrapped with this master key."""
        try:
            return self._wrap.decrypt(wrapped[:12], wrapped[12:], None)
        except InvalidTag:
            raise ValueError("wrapped with another master key, or damaged") from None


def _mac(key: bytes, label: bytes, raw_id: bytes) -> bytes:
    return hmac.digest(key, label + b"|" + raw_id, "sha256")[:_MAC_BYTES]


def _link_token(key: bytes, label: bytes, reservation_id: str) -> str:
    raw_id = bytes.fromhex(reservation_id.replace("-", ""))
    return encode_url_safe(raw_id + _mac(key, label, raw_id))


def _read_link_token(key: bytes, label: bytes, token: str) -> str | None:
    try:
        raw = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    if len(raw) != 16 + _MAC_BYTES or encode_url_safe(raw) != token:  # only the canonical form
        return None
    if not hmac.compare_digest(raw[16:], _mac(key, label, raw[:16])):
        return None
    return str(UUID(bytes=raw[:16]))


EnvironmentName = Literal["live", "test"]
