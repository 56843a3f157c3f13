"""Generate ids, keys, codes and secrets, and derive keys and link tokens."""

import base64
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

from appliance.core.text import fold

ACCESS_CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
_MAC_BYTES = 16  # with a 16-byte id and a generation, 44 base64 characters without padding
EnvironmentName = Literal["live", "test"]


class Tokens:
    """The source of all random values. Tests pass their own `random_bytes`."""

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self.random_bytes = random_bytes

    def new_id(self, now_ms: int) -> str:
        """Return a version 7 UUID for `now_ms` (ms since 1970). Version 7 UUIDs sort by time."""
        number = int.from_bytes(self.random_bytes(10), "big")
        rest = number & 0xFFF_3FFF_FFFF_FFFF_FFFF | 0x7000_8000_0000_0000_0000
        digits = f"{now_ms & 0xFFFF_FFFF_FFFF:012x}{rest:020x}"
        parts = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
        return "-".join(parts)

    def new_api_key(self, environment: str) -> str:
        """Return `svc_live_` or `svc_test_` followed by 48 hex digits (interface, section 5)."""
        return f"svc_{environment}_{self.random_bytes(24).hex()}"

    def new_terminal_token(self) -> str:
        """Return `term_` followed by 64 hex digits (256 random bits)."""
        return f"term_{self.random_bytes(32).hex()}"

    def new_webhook_secret(self) -> str:
        """Return `whsec_` and 256 random bits in URL-safe base64 (interface, section 2.8)."""
        return f"whsec_{encode_url_safe(self.random_bytes(32))}"

    def new_link_secret(self) -> str:
        """Return a secret for a one-time link: 256 random bits in URL-safe base64."""
        return encode_url_safe(self.random_bytes(32))

    def new_access_code(self) -> str:
        """Return `SVC-` followed by four random characters that are hard to confuse."""
        return f"SVC-{self._letters(4)}"

    def new_recovery_code(self) -> str:
        """Return sixteen random characters in groups of four (79 bits)."""
        return "-".join(self._letters(4) for _ in range(4))

    def new_pairing_code(self) -> str:
        """Return a code of eight random digits for pairing a terminal."""
        return f"{int.from_bytes(self.random_bytes(8), 'big') % 10**8:08d}"

    def _letters(self, count: int) -> str:
        letters: list[int] = []
        while len(letters) < count:  # skip bytes above 247, so all 31 letters are equally likely
            letters += [b for b in self.random_bytes(8) if b < 8 * len(ACCESS_CODE_ALPHABET)]
        return "".join(ACCESS_CODE_ALPHABET[b % 31] for b in letters[:count])


def encode_url_safe(raw: bytes) -> str:
    """Encode `raw` as URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def hash_token(token: str) -> bytes:
    """Return the SHA-256 hash that identifies a key, token or one-time link in the database.

    Accepts strings that are not valid Unicode, because a header may contain them. No stored row has
    the hash of such a string.
    """
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def account_hash(name: str) -> bytes:
    """Return the hash that identifies the account `name` in the counts of failed sign-ins.

    Names that are spelled alike, as `fold` compares them, have the same hash.
    """
    return hash_token(" ".join(fold(name).split()) or name)


def made_at(id_: str) -> int:
    """Return the time at which `new_id` created `id_`, in ms since 1970."""
    return int(id_.replace("-", "")[:12], 16)


def first_id_of(now_ms: int) -> str:
    """Return a string that sorts before all ids created at or after `now_ms` (ms since 1970)."""
    digits = f"{now_ms:012x}"
    return f"{digits[:8]}-{digits[8:]}"


class Keyring:
    """One environment's keys. Each purpose has its own key, derived from the master key.

    A key reveals nothing about the keys for other purposes or for the other environment.
    """

    def __init__(self, master: bytes, environment: str) -> None:
        """Derive the keys with HKDF-SHA256 from `master`, the 32 bytes in `secrets/master.key`."""

        def derive(purpose: str) -> bytes:
            info = f"venuebox {environment} {purpose}".encode()
            return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(master)

        # In each pair, the first function returns the token for an id. The second returns what is
        # in a token, or None if the token is invalid.
        # The secret parts of `guestAccessUrl` and `claimUrl` contain a reservation id and the
        # reservation's `link_generation`:
        self.access_token, self.read_access_token = _link_tokens(derive("access link"), b"access")
        self.claim_token, self.read_claim_token = _link_tokens(derive("claim link"), b"claim")
        # The cookie that links a guest's browser to its reservations contains a device id:
        self.device_token, self.read_device_token = _id_tokens(derive("guest device"), b"device")
        # A hidden booking form field contains a form id, which encodes when the form was shown:
        self.form_token, self.read_form_token = _id_tokens(derive("booking form"), b"form")
        # The token in the URL of an echo receiver (in the test environment) contains its id:
        self.echo_token, self.read_echo_token = _id_tokens(derive("echo receiver"), b"echo")
        self._wrap = AESGCM(derive("wrap"))
        self._proof_key = derive("outside check")
        self._signing_keys: dict[bytes, Ed25519PrivateKey] = {}

    def prove(self, nonce: str) -> str:
        """Return a MAC of `nonce`, in hex, which only this box can compute."""
        return hmac.digest(self._proof_key, nonce.encode(), "sha256").hex()

    def wrap(self, secret: bytes, nonce: bytes) -> bytes:
        """Encrypt a secret for storage with AES-256-GCM. `nonce` must be 12 new random bytes."""
        return nonce + self._wrap.encrypt(nonce, secret, None)

    def open_signing_key(self, wrapped: bytes) -> Ed25519PrivateKey:
        """Decrypt a wrapped signing key and cache it. Raises ValueError if it is damaged."""
        if wrapped not in self._signing_keys:
            raw = self.unwrap(wrapped)
            self._signing_keys[wrapped] = Ed25519PrivateKey.from_private_bytes(raw)
        return self._signing_keys[wrapped]

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt a wrapped secret.

        Raises ValueError if it was wrapped with a different master key or is damaged.
        """
        try:
            return self._wrap.decrypt(wrapped[:12], wrapped[12:], None)
        except InvalidTag:
            raise ValueError("wrapped with a different master key, or damaged") from None


def _link_tokens(
    key: bytes, label: bytes
) -> tuple[Callable[[str, int], str], Callable[[str], tuple[str, int] | None]]:
    """Return two functions. One returns the token for an id and a generation (0 to 255).

    The other returns both from a token, or None if the token was not created with `key` and
    `label`. A token has 44 characters, which also encode a 128-bit MAC.
    """

    def mac(signed: bytes) -> bytes:
        return hmac.digest(key, label + b"|" + signed, "sha256")[:_MAC_BYTES]

    def make(id_: str, generation: int) -> str:
        signed = bytes.fromhex(id_.replace("-", "")) + bytes([generation])
        return encode_url_safe(signed + mac(signed))

    def read(token: str) -> tuple[str, int] | None:
        try:
            raw = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
        except ValueError:
            return None
        # Also reject other base64 encodings of the same bytes.
        if len(raw) != 17 + _MAC_BYTES or encode_url_safe(raw) != token:
            return None
        if not hmac.compare_digest(raw[17:], mac(raw[:17])):
            return None
        return str(UUID(bytes=raw[:16])), raw[16]

    return make, read


def _id_tokens(
    key: bytes, label: bytes
) -> tuple[Callable[[str], str], Callable[[str], str | None]]:
    """Return the functions of `_link_tokens` for ids that have no generations."""
    make, read = _link_tokens(key, label)
    return lambda id_: make(id_, 0), lambda token: (read(token) or (None,))[0]
