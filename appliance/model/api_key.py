"""A partner's key and its scopes (contract section 5)."""

from dataclasses import dataclass

SCOPES = (
    "venue:read",
    "availability:read",
    "reservations:read",
    "reservations:write",
    "webhooks:manage",
)
READ_ONLY_SCOPES = ("venue:read", "availability:read", "reservations:read")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as stored: never the key itself, only its hash, prefix and last four.

    `revoked_at` may lie ahead: a key that has a successor may be given a day to change over.
    """

    id: str
    lineage: str
    name: str
    prefix: str
    last_four: str
    scopes: tuple[str, ...]
    created_at: int
    last_used_at: int | None
    revoked_at: int | None

    def is_revoked(self, now: int) -> bool:
        """Whether it is refused at that instant (ms since 1970)."""
        return self.revoked_at is not None and self.revoked_at <= now
