"""Staff accounts and their roles, with queries for the tables `staff` and `invitation`."""

from dataclasses import dataclass

from appliance.core.tokens import account_hash
from appliance.database.connection import Reader, Transaction

ROLES = ("owner", "manager", "host", "door")
PASSWORD_MIN = 8
PASSWORD_MAX = 256


@dataclass(frozen=True, slots=True)
class StaffMember:
    """A staff account. Times are in ms since 1970.

    `has_password` is 0 before the invitation is used and 1 afterwards.
    """

    id: str
    name: str
    role: str
    has_password: int
    created_at: int
    disabled_at: int | None
    language: str = "fr"

    def may(self, role: str) -> bool:
        """Whether this account's role includes `role`.

        Each role includes the roles that come after it in ROLES.
        """
        return ROLES.index(self.role) <= ROLES.index(role)


STAFF_COLUMNS = (
    "s.id, s.name, s.role, s.password IS NOT NULL, s.created_at, s.disabled_at, s.language"
)


def find_invited(reader: Reader, link_hash: bytes) -> StaffMember | None:
    """Return the account that an invitation link is for.

    Return None if the link is unknown, used or expired, or the account is disabled.
    """
    sql = f"""SELECT {STAFF_COLUMNS}
              FROM staff_invitation i JOIN staff s ON s.id = i.staff_id
              WHERE i.hash = :hash AND i.used_at IS NULL AND i.expires_at > :now
                  AND s.disabled_at IS NULL"""  # noqa: S608
    return reader.one(StaffMember, sql, {"hash": link_hash, "now": reader.now})


def find_by_name(reader: Reader, name: str) -> StaffMember | None:
    """Return the enabled account with that name, or None. Names are compared as `fold` does."""
    wanted = account_hash(name)
    accounts = (person for person in list_staff(reader) if person.disabled_at is None)
    return next((person for person in accounts if account_hash(person.name) == wanted), None)


def find_password(reader: Reader, staff_id: str) -> str | None:
    """Return an account's Argon2id hash, or None if it is disabled or has no password."""
    sql = "SELECT password FROM staff WHERE id = :id AND disabled_at IS NULL"
    found: str | None = reader.value(sql, {"id": staff_id})
    return found


def find_staff(reader: Reader, staff_id: str) -> StaffMember | None:
    """Return the account with this id, or None."""
    sql = f"SELECT {STAFF_COLUMNS} FROM staff s WHERE s.id = :id"  # noqa: S608
    return reader.one(StaffMember, sql, {"id": staff_id})


def list_staff(reader: Reader) -> list[StaffMember]:
    """Return all accounts sorted by name. Disabled accounts come last."""
    sql = f"""SELECT {STAFF_COLUMNS} FROM staff s
              ORDER BY s.disabled_at IS NOT NULL, s.name COLLATE NOCASE"""  # noqa: S608
    return [StaffMember(*row) for row in reader.rows(sql)]


def has_owner(reader: Reader) -> bool:
    """Whether the box has been set up, i.e. whether an enabled owner with a password exists."""
    sql = """SELECT 1 FROM staff
             WHERE role = 'owner' AND password IS NOT NULL AND disabled_at IS NULL LIMIT 1"""
    return reader.row(sql) is not None


def set_language(tx: Transaction, staff_id: str, language: str) -> None:
    """Set an account's language for the portal."""
    tx.update("staff", staff_id, language=language)


def list_locked(reader: Reader, accounts: dict[str, bytes], wrong: int) -> set[str]:
    """Return the ids of the accounts in `accounts` with at least `wrong` failed sign-ins.

    `accounts` maps each staff id to the `account_hash` of that account's name.
    """
    sql = "SELECT DISTINCT account FROM staff_sign_in_failure WHERE wrong >= :wrong"
    locked = {account for (account,) in reader.rows(sql, {"wrong": wrong})}
    return {staff_id for staff_id, account in accounts.items() if account in locked}


def list_open_invitations(reader: Reader) -> dict[str, int]:
    """Return a map from staff id to expiry (ms since 1970) for all valid invitations."""
    sql = """SELECT staff_id, max(expires_at) FROM staff_invitation
             WHERE used_at IS NULL AND expires_at > :now GROUP BY staff_id"""
    return dict(reader.rows(sql, {"now": reader.now}))


def set_password(tx: Transaction, staff_id: str, password_hash: str) -> None:
    """Store an account's password as an Argon2id hash in the standard encoding."""
    tx.update("staff", staff_id, password=password_hash)
