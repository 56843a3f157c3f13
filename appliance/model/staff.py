"""The people of the house: what they may do, and which passwords they may choose."""

from dataclasses import dataclass

ROLES = ("owner", "manager", "host", "door")
PASSWORD_MIN = 8
PASSWORD_MAX = 256


@dataclass(frozen=True, slots=True)
class StaffMember:
    """A person who may sign in. `has_password` is false until the invitation was used."""

    id: str
    name: str
    role: str
    has_password: bool
    created_at: int
    disabled_at: int | None
    language: str = "fr"

    def may(self, role: str) -> bool:
        """Whether this person's role includes `role`: an owner may what a manager may, and so on.

        The order is that of ROLES.
        """
        return ROLES.index(self.role) <= ROLES.index(role)
