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
    """A key as stored: never the key itself, only its hash, prefix and last four."""

    id: str
    lineage: str
    name: str
    prefix: str
    last_four: str
    scopes: tuple[str, ...]
    created_at: int
    last_used_at: int | None
    revoked_at: int | None
