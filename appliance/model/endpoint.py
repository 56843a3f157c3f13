"""A partner's webhook receiver (interface, section 2.8)."""

import re
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.errors import field_invalid
from appliance.model.reservation import Reservation

_PIN = re.compile(r"[0-9a-f]{64}")
_CA_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of `endpoint`. Secrets are wrapped; instants are ms since 1970.

    `ca` (PEM) or `pin` (SHA-256 of a certificate) say what its certificate is checked against;
    with neither it is the machine's own list. `clock_skew_s` is its clock minus ours. `lineage`
    is that of the key that registered it, None when no key did; `own_refs` 1 tells it the
    externalRef of that line alone.
    """

    id: str
    url: str
    events: tuple[str, ...]
    active: bool
    created_at: int
    secret: bytes
    previous_secret: bytes | None
    previous_secret_expires_at: int | None
    failures_in_a_row: int
    last_success_at: int | None
    last_failure_at: int | None
    last_outcome: str | None
    ca: str | None = None
    pin: bytes | None = None
    clock_skew_s: int | None = None
    lineage: str | None = None
    own_refs: int = 0

    def may_read_reference(self, reservation: Reservation) -> bool:
        """Whether events tell it the externalRef."""
        own = self.lineage is not None and self.lineage == reservation.lineage
        return own or not self.own_refs


def parse_ca(text: str) -> str:
    """The certificates in `text` as plain PEM, without whatever stands between them.

    ValidationError when there is none, or one that cannot be read.
    """
    try:
        found = x509.load_pem_x509_certificates(text[:_CA_MAX].encode())
    except ValueError:
        raise field_invalid("ca", "ca") from None
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in found)


def parse_pin(text: str) -> bytes:
    """The 32 bytes of a certificate's SHA-256, in hex, with or without colons.

    ValidationError when it is anything else.
    """
    digits = text.strip().lower().removeprefix("sha256:").replace(":", "")
    if not _PIN.fullmatch(digits):
        raise field_invalid("pin", "pin")
    return bytes.fromhex(digits)
