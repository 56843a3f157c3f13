"""A letter to a guest, what became of an attempt to send it, and when the next one is due."""

from dataclasses import dataclass
from typing import Literal

KINDS = (
    "confirmation", "requested", "accepted", "declined", "cancelled", "reminder", "payment_due",
)  # fmt: skip
WITH_PASS = ("confirmation", "accepted", "reminder")  # the guest is expected: the pass goes along
WITH_CALENDAR = (*WITH_PASS, "cancelled")  # which strikes the entry out again
UNASKED = ("reminder",)  # a guest may want no more of these
LANGUAGES = ("fr", "en", "ar")
RETRY_SECONDS = (60, 300, 1800, 7200, 21600)
DAILY_SECONDS = 86400
SETTINGS_TROUBLE = "settings: "  # begins the trouble that only the owner can end


@dataclass(frozen=True, slots=True)
class Letter:
    """A row of `letter`. Instants are ms since 1970; `recipient` is null once erased."""

    id: str
    reservation_id: str
    kind: str
    recipient: str | None
    language: str
    state: str
    attempts: int
    due_at: int
    created_at: int
    sent_at: int | None
    trouble: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt.

    `accepted`: the mail server took it. `refused`: never for this recipient. `deferred`: not
    this letter now. `unreachable`: the server takes no letter at all at present. `trouble`
    says why, without personal data.
    """

    result: Literal["accepted", "refused", "deferred", "unreachable"]
    trouble: str | None = None


def retry_delay(attempts: int) -> int:
    """Seconds from the end of the `attempts`-th failed attempt to the next one."""
    return RETRY_SECONDS[attempts - 1] if attempts <= len(RETRY_SECONDS) else DAILY_SECONDS


def remaining_delay(letter: Letter, now: int) -> float:
    """Seconds until a waiting letter is due after a restart: never more than was planned.

    A clock that was wrong then or is wrong now postpones nothing beyond its step of the
    ladder, and what waits for the owner is tried at once: the settings may have changed.
    """
    if letter.attempts == 0 or (letter.trouble or "").startswith(SETTINGS_TROUBLE):
        return 0.0
    return min(max(0.0, (letter.due_at - now) / 1000), float(retry_delay(letter.attempts)))
