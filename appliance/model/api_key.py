"""A partner's key and its scopes (interface, section 5)."""

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

    One that has a successor may be given a day: it `changes_over`, and is refused from `revoked_at`
    on. Any other is refused once it was revoked, whatever a clock said then or says now.
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
    changes_over: bool = False

    def is_revoked(self, now: int) -> bool:
        """Whether it is refused at that instant (ms since 1970)."""
        if self.revoked_at is None:
            return False
        return not self.changes_over or self.revoked_at <= now
