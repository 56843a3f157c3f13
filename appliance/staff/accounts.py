"""Create, change and disable staff accounts, and set up a new box with its first owner.

The last owner who can sign in cannot be disabled or lose the owner role.
"""

from dataclasses import dataclass

from appliance.core.errors import ChangedMeanwhile, LastOwner, NameTaken, NotFound
from appliance.core.text import clean_line
from appliance.core.tokens import account_hash, hash_token
from appliance.database.connection import Reader, Transaction, known
from appliance.staff.audit_log import CONSOLE, record_audit
from appliance.staff.model import (
    StaffMember,
    find_by_name,
    find_invited,
    find_staff,
    has_owner,
    list_staff,
    set_language,
    set_password,
)
from appliance.staff.sign_in import (
    OpenedSession,
    clear_failures,
    delete_session,
    delete_sessions,
    start_session,
)

# Long enough for an invitation sent on Friday and read on Monday.
INVITATION_MILLISECONDS = 72 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Invitation:
    """The invited account's id and the link's secret. Only a hash of the secret is stored."""

    staff_id: str
    secret: str


def create_staff(tx: Transaction, name: str, role: str, *, actor: str = CONSOLE) -> Invitation:
    """Create an account without a password, and return an invitation link to set it.

    The link works once within 72 hours. `role` must be in ROLES. Raises NameTaken if an enabled
    account has that name.
    """
    name = clean_line(name)
    _check_name_is_free(tx, name)
    staff_id = tx.new_id()
    tx.insert("staff", {"id": staff_id, "name": name, "role": role, "created_at": tx.now})
    record_audit(tx, actor, "person_invited", person=staff_id, name=name, role=role)
    return _invite(tx, staff_id)


def _invite(tx: Transaction, staff_id: str) -> Invitation:
    """Store and return an invitation link, which works once within 72 hours."""
    secret = tx.tokens.new_link_secret()
    expires_at = tx.now + INVITATION_MILLISECONDS
    values = {"hash": hash_token(secret), "staff_id": staff_id, "expires_at": expires_at}
    tx.insert("staff_invitation", values)
    return Invitation(staff_id, secret)


def _use_invitations(tx: Transaction, staff_id: str) -> None:
    """Mark all of an account's open invitations as used."""
    sql = "UPDATE staff_invitation SET used_at = :now WHERE staff_id = :id AND used_at IS NULL"
    tx.execute(sql, {"id": staff_id, "now": tx.now})


def _check_name_is_free(tx: Transaction, name: str) -> None:
    """Raise NameTaken if an enabled account has that name, in any spelling of it."""
    if find_by_name(tx, name):
        raise NameTaken(name=name)


def accept_invitation(tx: Transaction, link_hash: bytes, password_hash: str, language: str) -> bool:
    """Set the invited account's password. Return False if the link is not valid.

    The first time, also set the account's language.
    """
    invited = find_invited(tx, link_hash)
    if invited is None:
        return False
    set_password(tx, invited.id, password_hash)
    if not invited.has_password:
        set_language(tx, invited.id, language)
    _use_invitations(tx, invited.id)
    delete_sessions(tx, invited.id)  # these sessions were opened with the old password
    record_audit(tx, f"staff:{invited.id}", "link_used")
    return True


def invite_again(tx: Transaction, staff_id: str, *, actor: str = CONSOLE) -> Invitation:
    """Return a new invitation link, which works once within 72 hours.

    Revoke earlier links and clear failed sign-ins. The old password stays valid until the link is
    used. Raises NotFound if the account is unknown or disabled.
    """
    person = known(find_staff(tx, staff_id))
    if person.disabled_at is not None:
        raise NotFound
    _use_invitations(tx, staff_id)
    clear_failures(tx, account_hash(person.name))
    record_audit(tx, actor, "link_made", person=staff_id)
    return _invite(tx, staff_id)


def disable_staff(tx: Transaction, staff_id: str, *, actor: str = CONSOLE) -> None:
    """Disable an account with immediate effect, and end its sessions. Idempotent.

    Raises NotFound if the id is unknown, and LastOwner if no other owner can sign in.
    """
    person = known(find_staff(tx, staff_id))
    if person.disabled_at is not None:
        return
    _check_other_owner(tx, person)
    tx.update("staff", staff_id, disabled_at=tx.now)
    _use_invitations(tx, staff_id)
    delete_sessions(tx, staff_id)
    record_audit(tx, actor, "person_disabled", person=staff_id)


def enable_staff(tx: Transaction, staff_id: str, *, actor: str = CONSOLE) -> None:
    """Enable a disabled account. Its password does not change. Idempotent.

    Raises NotFound if the id is unknown, and NameTaken if an enabled account now has that name.
    """
    person = known(find_staff(tx, staff_id))
    if person.disabled_at is None:
        return
    _check_name_is_free(tx, person.name)
    tx.update("staff", staff_id, disabled_at=None)
    record_audit(tx, actor, "person_enabled", person=staff_id)


def change_role(
    tx: Transaction, staff_id: str, seen: str, role: str, *, actor: str = CONSOLE
) -> None:
    """Change an account's role with immediate effect. `role` must be in ROLES.

    `seen` is the role that the form showed. Raises NotFound if the id is unknown, ChangedMeanwhile
    if the role is no longer `seen`, and LastOwner if no other owner can sign in.
    """
    person = known(find_staff(tx, staff_id))
    if person.role != seen:
        raise ChangedMeanwhile
    if role == person.role:
        return
    if role != "owner":
        _check_other_owner(tx, person)
    tx.update("staff", staff_id, role=role)
    record_audit(tx, actor, "role_changed", person=staff_id, before=person.role, after=role)


def unlock(tx: Transaction, staff_id: str, *, actor: str = CONSOLE) -> None:
    """Clear an account's failed sign-ins. Raises NotFound if the id is unknown."""
    clear_failures(tx, account_hash(known(find_staff(tx, staff_id)).name))
    record_audit(tx, actor, "unlocked", person=staff_id)


def end_session(tx: Transaction, staff_id: str, session_id: str, *, actor: str) -> None:
    """End one of an account's sessions. Raises NotFound if the session has already ended."""
    if not delete_session(tx, staff_id, session_id):
        raise NotFound
    record_audit(tx, actor, "session_ended", person=staff_id)


def end_sessions(tx: Transaction, staff_id: str, *, actor: str) -> None:
    """End all of an account's sessions."""
    ended = delete_sessions(tx, staff_id)
    record_audit(tx, actor, "sessions_ended", person=staff_id, sessions=ended)


def _check_other_owner(tx: Transaction, person: StaffMember) -> None:
    """Raise LastOwner if `person` is the only owner who has a password and is enabled."""
    others = any(
        p.role == "owner" and p.has_password and p.disabled_at is None and p.id != person.id
        for p in list_staff(tx)
    )
    if person.role == "owner" and person.has_password and not others:
        raise LastOwner


def shows_setup_steps(reader: Reader) -> bool:
    """Whether the setup was started, and its steps are not left for later."""
    return bool(reader.value("SELECT NOT steps_hidden FROM setup"))


def is_closed(reader: Reader) -> bool:
    """Whether the box serves only the setup page, because it has no owner yet."""
    return bool(reader.value("SELECT closed FROM setup")) and not has_owner(reader)


def begin_setup(tx: Transaction, *, closed: bool) -> None:
    """Start the setup unless it has already been started.

    If `closed` is True, the box serves only the setup page until it has an owner.
    """
    sql = "INSERT INTO setup (id, closed) VALUES (1, :closed) ON CONFLICT DO NOTHING"
    tx.execute(sql, {"closed": int(closed)})


def _set_setup_link(tx: Transaction, link_hash: bytes | None, expires_at: int | None) -> None:
    """Replace the setup link and its expiry (ms since 1970). Earlier links become invalid."""
    sql = "UPDATE setup SET link_hash = :hash, link_expires_at = :expires_at"
    tx.execute(sql, {"hash": link_hash, "expires_at": expires_at})


def is_setup_link(reader: Reader, link_hash: bytes) -> bool:
    """Whether this is the hash of the current setup link and the link has not expired."""
    sql = "SELECT 1 FROM setup WHERE link_hash = :hash AND link_expires_at > :now"
    return reader.row(sql, {"hash": link_hash, "now": reader.now}) is not None


SETUP_LINK_MILLISECONDS = 30 * 60 * 1000
STEPS = ("venue", "tables", "slots", "mail", "address", "phone")


def offer_setup(tx: Transaction) -> str | None:
    """Return the secret of a new setup link, or None if the box has an owner.

    The link works once within 30 minutes. Earlier links are revoked.
    """
    if has_owner(tx):
        return None
    begin_setup(tx, closed=False)
    secret = tx.tokens.new_link_secret()
    _set_setup_link(tx, hash_token(secret), tx.now + SETUP_LINK_MILLISECONDS)
    return secret


def create_first_owner(
    tx: Transaction, link_hash: bytes, name: str, password_hash: str,
    *, language: str, device_secret: str | None = None, device: str = "",
) -> OpenedSession | None:  # fmt: skip
    """Create the first owner and open a session.

    Return None if the link is used, expired or unknown, or if the box already has an owner. If two
    requests use the link at the same time, only one succeeds.
    """
    if has_owner(tx) or not is_setup_link(tx, link_hash):
        return None
    _set_setup_link(tx, None, None)
    # An account with the same name may have been invited on the console in the meantime. Disable
    # it, because the names of enabled accounts must be unique.
    if invited := find_by_name(tx, name):
        tx.update("staff", invited.id, disabled_at=tx.now)
    staff_id = tx.new_id()
    tx.insert(
        "staff",
        {"id": staff_id, "name": name, "role": "owner", "password": password_hash,
         "language": language, "created_at": tx.now},
    )  # fmt: skip
    record_audit(tx, f"staff:{staff_id}", "box_founded", person=staff_id, role="owner")
    return start_session(tx, staff_id, device_secret, device)


def hide_setup_steps(tx: Transaction) -> None:
    """Leave the steps of the setup for later."""
    tx.execute("UPDATE setup SET steps_hidden = 1")
