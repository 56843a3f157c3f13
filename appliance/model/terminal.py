"""A terminal: a phone, a scanner or another computer that may ask the box who comes in."""

from dataclasses import dataclass

ROLES = ("scan", "search", "override")  # each includes the one before
NAME_MAX = 100
PORTAL_TERMINAL_ID = "00000000-0000-7000-8000-00000000da00"  # stands for the portal's check-ins


@dataclass(frozen=True, slots=True)
class Terminal:
    """A row of `terminal`, never its token. `language` is that of its verdicts.

    `version` is what it said of itself when it was last heard of.
    """

    id: str
    name: str
    role: str
    language: str
    created_at: int
    last_seen_at: int | None
    revoked_at: int | None
    version: str | None = None

    def may(self, role: str) -> bool:
        """Whether its role includes `role`."""
        return ROLES.index(self.role) >= ROLES.index(role)
