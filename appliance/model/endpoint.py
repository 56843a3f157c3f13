"""A partner's webhook receiver (contract section 2.8)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of `endpoint`. Secrets are wrapped; instants are ms since 1970."""

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
