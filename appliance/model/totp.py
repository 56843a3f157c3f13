"""Codes of an authenticator app (RFC 6238): SHA-1, six digits, a new one every 30 seconds."""

import base64
import hmac
import unicodedata
from urllib.parse import quote

SECRET_BYTES = 20  # as long as the hash (RFC 4226, section 4)
STEP_MILLISECONDS = 30_000
_LABEL_MAX = 30  # characters: a QR code that says more is hard to scan


def totp_code(secret: bytes, step: int) -> str:
    """The six digits of a step."""
    digest = hmac.digest(secret, step.to_bytes(8, "big"), "sha1")
    offset = digest[-1] & 0xF
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 10**6:06d}"


def fitting_steps(secret: bytes, typed: str, now: int) -> list[int]:
    """Of the step at `now` (ms) and those beside it, the ones whose code was typed."""
    code, present = _read_code(typed), now // STEP_MILLISECONDS
    near = range(max(present - 1, 0), present + 2)
    return [step for step in near if hmac.compare_digest(totp_code(secret, step), code)]


def spell_secret(secret: bytes) -> str:
    """Base32 in groups of four, to be typed into the app."""
    letters = _base32(secret)
    return " ".join(letters[i : i + 4] for i in range(0, len(letters), 4))


def app_address(secret: bytes, issuer: str, account: str) -> str:
    """The `otpauth://` address that an app reads from the QR code."""
    issuer, account = (quote(name[:_LABEL_MAX], safe="") for name in (issuer, account))
    return (
        f"otpauth://totp/{issuer}:{account}?secret={_base32(secret)}&issuer={issuer}"
        "&algorithm=SHA1&digits=6&period=30"
    )


def _base32(secret: bytes) -> str:
    return base64.b32encode(secret).decode().rstrip("=")


def _read_code(typed: str) -> str:
    """Digits of any script, without spaces; whatever else was typed fits no code."""
    return "".join(str(unicodedata.decimal(c, "?")) for c in typed if not c.isspace())
