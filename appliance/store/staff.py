"""Rows of `staff` and of `invitation`, the one-time links on which a password is set."""

from appliance.model.staff import StaffMember
from appliance.store.connection import Reader, Transaction

_COLUMNS = "s.id, s.name, s.role, s.password IS NOT NULL, s.created_at, s.disabled_at"


def insert_staff(tx: Transaction, staff_id: str, name: str, role: str) -> None:
    """A person without a password."""
    tx.insert("staff", {"id": staff_id, "name": name, "role": role, "created_at": tx.now})


def insert_invitation(tx: Transaction, link_hash: bytes, staff_id: str, expires_at: int) -> None:
    """A one-time link, stored by the SHA-256 of its secret."""
    tx.insert("invitation", {"hash": link_hash, "staff_id": staff_id, "expires_at": expires_at})


def find_invited(reader: Reader, link_hash: bytes) -> StaffMember | None:
    """Whom a link invites, or None: unknown, used and expired ones are alike."""
    row = reader.row(
        f"""SELECT {_COLUMNS}
            FROM invitation i JOIN staff s ON s.id = i.staff_id
            WHERE i.hash = :hash AND i.used_at IS NULL AND i.expires_at > :now
                AND s.disabled_at IS NULL""",  # noqa: S608
        {"hash": link_hash, "now": reader.now},
    )
    if row is None:
        return None
    id_, name, role, has_password, created_at, disabled_at = row
    return StaffMember(id_, name, role, bool(has_password), created_at, disabled_at)


def set_password(tx: Transaction, staff_id: str, password_hash: str) -> None:
    """Store an Argon2id hash in its standard encoding."""
    tx.execute(
        "UPDATE staff SET password = :password WHERE id = :id",
        {"id": staff_id, "password": password_hash},
    )


def use_invitations(tx: Transaction, staff_id: str) -> None:
    """Every open link of that person is spent."""
    tx.execute(
        "UPDATE invitation SET used_at = :now WHERE staff_id = :id AND used_at IS NULL",
        {"id": staff_id, "now": tx.now},
    )
