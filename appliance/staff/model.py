"""Staff accounts and invitations: roles, and the rows of `staff` and `invitation`."""

from dataclasses import dataclass

from appliance.database.connection import Reader, Transaction

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


STAFF_COLUMNS = (
    "s.id, s.name, s.role, s.password IS NOT NULL, s.created_at, s.disabled_at, s.language"
)


def insert_invitation(tx: Transaction, link_hash: bytes, staff_id: str, expires_at: int) -> None:
    """A one-time link, stored by the SHA-256 of its secret."""
    tx.insert("invitation", {"hash": link_hash, "staff_id": staff_id, "expires_at": expires_at})


def find_invited(reader: Reader, link_hash: bytes) -> StaffMember | None:
    """Whom a link invites, or None: unknown, used and expired ones are alike."""
    sql = f"""SELECT {STAFF_COLUMNS}
              FROM invitation i JOIN staff s ON s.id = i.staff_id
              WHERE i.hash = :hash AND i.used_at IS NULL AND i.expires_at > :now
                  AND s.disabled_at IS NULL"""  # noqa: S608
    return reader.one(staff_member, sql, {"hash": link_hash, "now": reader.now})


def find_by_name(reader: Reader, name: str) -> tuple[StaffMember, str] | None:
    """Who signs in under `name`, with the Argon2id hash; None without a password or disabled."""
    sql = f"""SELECT {STAFF_COLUMNS}, s.password FROM staff s
              WHERE s.name = :name COLLATE NOCASE AND s.password IS NOT NULL
                  AND s.disabled_at IS NULL"""  # noqa: S608
    row = reader.row(sql, {"name": name})
    return None if row is None else (staff_member(*row[:-1]), row[-1])


def find_password(reader: Reader, staff_id: str) -> str | None:
    """The Argon2id hash by which that person signs in; None without one, or disabled."""
    sql = "SELECT password FROM staff WHERE id = :id AND disabled_at IS NULL"
    found: str | None = reader.value(sql, {"id": staff_id})
    return found


def find_staff(reader: Reader, staff_id: str) -> StaffMember | None:
    """The person with that id."""
    sql = f"SELECT {STAFF_COLUMNS} FROM staff s WHERE s.id = :id"  # noqa: S608
    return reader.one(staff_member, sql, {"id": staff_id})


def list_staff(reader: Reader) -> list[StaffMember]:
    """Everybody, those who left last."""
    sql = f"""SELECT {STAFF_COLUMNS} FROM staff s
              ORDER BY s.disabled_at IS NOT NULL, s.name COLLATE NOCASE"""  # noqa: S608
    return [staff_member(*row) for row in reader.rows(sql)]


def has_owner(reader: Reader) -> bool:
    """Whether an owner can sign in: until then, nobody has taken this box into use."""
    sql = """SELECT 1 FROM staff
             WHERE role = 'owner' AND password IS NOT NULL AND disabled_at IS NULL LIMIT 1"""
    return reader.row(sql) is not None


def set_language(tx: Transaction, staff_id: str, language: str) -> None:
    """In which language that person reads the portal."""
    tx.update("staff", staff_id, language=language)


def list_locked(reader: Reader, accounts: dict[str, bytes], wrong: int) -> set[str]:
    """Of people, each id with its account, those for whom so many wrong passwords were typed."""
    sql = "SELECT DISTINCT account FROM sign_in_failure WHERE wrong >= :wrong"
    locked = {account for (account,) in reader.rows(sql, {"wrong": wrong})}
    return {staff_id for staff_id, account in accounts.items() if account in locked}


def list_open_invitations(reader: Reader) -> dict[str, int]:
    """Who holds a link that works, and until when."""
    sql = """SELECT staff_id, max(expires_at) FROM invitation
             WHERE used_at IS NULL AND expires_at > :now GROUP BY staff_id"""
    return {row[0]: row[1] for row in reader.rows(sql, {"now": reader.now})}


def staff_member(
    id_: str, name: str, role: str, password: int, made: int, left: int | None, language: str
) -> StaffMember:
    """The person in a row of STAFF_COLUMNS."""
    return StaffMember(id_, name, role, bool(password), made, left, language)


def set_password(tx: Transaction, staff_id: str, password_hash: str) -> None:
    """Store an Argon2id hash in its standard encoding."""
    tx.update("staff", staff_id, password=password_hash)


def use_invitations(tx: Transaction, staff_id: str) -> None:
    """Every open link of that person is spent."""
    sql = "UPDATE invitation SET used_at = :now WHERE staff_id = :id AND used_at IS NULL"
    tx.execute(sql, {"id": staff_id, "now": tx.now})
