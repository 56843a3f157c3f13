"""What a partner computes to check a delivery, step by step (interface, sections 6.1 and 6.3)."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

_TOLERANCE_SECONDS = 300
_DIGITS_MAX = 15


@dataclass(frozen=True, slots=True)
class Verification:
    """The steps and their outcome: `valid`, `missing`, `too old` or `wrong`.

    `age` is in seconds, negative when the sender's clock is ahead. `expected` has one digest
    for each secret.
    """

    verdict: str
    t: int | None
    age: int | None
    expected: tuple[str, ...]
    given: tuple[str, ...]


def verify(secrets: Sequence[str], header: str, raw: bytes, now_ms: int) -> Verification:
    """Check the `X-Service-Signature` of a raw body; any of `secrets` may have signed it."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    given = tuple(value for name, _, value in parts if name == "v1")
    stamps = [value for name, _, value in parts if name == "t" and _is_number(value)]
    if not stamps:
        return Verification("missing", None, None, (), given)
    age = now_ms // 1000 - int(stamps[0])
    signed = stamps[0].encode() + b"." + raw
    expected = tuple(hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets)
    return Verification(_judge(age, expected, given), int(stamps[0]), age, expected, given)


def _judge(age: int, expected: Sequence[str], given: Sequence[str]) -> str:
    if abs(age) > _TOLERANCE_SECONDS:
        return "too old"
    fits = [
        hmac.compare_digest(ours.encode(), theirs.encode(errors="surrogatepass"))
        for ours in expected
        for theirs in given
    ]
    return "valid" if any(fits) else "wrong"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
