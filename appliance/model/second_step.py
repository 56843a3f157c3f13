"""The second step of a sign-in: an authenticator app, and recovery codes for when it is lost."""

from dataclasses import dataclass

from appliance.tokens import ACCESS_CODE_ALPHABET

RECOVERY_CODES = 10
OFFER_MILLISECONDS = 15 * 60_000
ASKED_MILLISECONDS = 5 * 60_000


@dataclass(frozen=True, slots=True)
class SecondStep:
    """By which secret somebody's app shows codes; in force unless `since` is None."""

    wrapped: bytes
    offered_at: int
    since: int | None


@dataclass(frozen=True, slots=True)
class AskedCode:
    """Who is asked for a code after a right password, and in which row it is counted."""

    staff_id: str
    device: bytes
    is_counted: bool


def tidy_recovery_code(typed: str) -> str:
    """A recovery code as it is hashed, however it was typed."""
    return "".join(c for c in typed.upper() if c in ACCESS_CODE_ALPHABET)
