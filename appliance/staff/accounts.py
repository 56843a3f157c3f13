"""Create, change and disable staff accounts. At least one owner can always sign in."""

from dataclasses import dataclass

from appliance.core.errors import ChangedMeanwhile, LastOwner, NameTaken, NotFound
from appliance.core.tokens import account_hash, hash_token
from appliance.database.connection import Transaction, known
from appliance.staff.audit_log import CONSOLE, record_audit
from appliance.staff.model import (
    StaffMember,
    find_invited,
    find_staff,
    insert_invitation,
    list_staff,
    set_password,
    use_invitations,
)
from appliance.staff.sign_in import clear_failures, delete_session, delete_sessions

# Long enough for an invitation sent on Friday and read on Monday.
INVITATION_MILLISECONDS = 72 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Invitation:
    """The invited account, and the secret part of the link, which is not stored."""

    staff_id: str
    secret: str


def create_staff(tx: Transaction, name: str, role: str, *, actor: str = CONSOLE) -> Invitation:
    """Create an account with one of ROLES, without a password. The link works once, for 72 hours.

    NameTaken if an enabled account has that name.
    """
    name = " ".join(name.split())
    check_free(tx, name)
    staff_id = tx.new_id()
    tx.insert("staff", {"id": staff_id, "name": name, "role": role, "created_at": tx.now})
    record_audit(tx, actor, "person_invited", person=staff_id, name=name, role=role)
    return invite(tx, staff_id)


def invite(tx: Transaction, staff_id: str) -> Invitation:
    """Add an invitation link, which works once and for 72 hours."""
    invitation = Invitation(staff_id, tx.tokens.new_link_secret())
    expires_at = tx.now + INVITATION_MILLISECONDS
    insert_invitation(tx, hash_token(invitation.secret), staff_id, expires_at)
    return invitation


def check_free(tx: Transaction, name: str) -> None:
    """Raise NameTaken if an enabled account has that name, ignoring case."""
    if any(p.name.casefold() == name.casefold() for p in list_staff(tx) if not p.disabled_at):
        raise NameTaken(name=name)


def accept_invitation(tx: Transaction, link_hash: bytes, password_hash: str) -> bool:
    """Set the password of the account that the link invites. False if the link is not valid."""
    invited = find_invited(tx, link_hash)
    if invited is None:
        return False
    set_password(tx, invited.id, password_hash)
    use_invitations(tx, invited.id)
    delete_sessions(tx, invited.id)  # sessions opened with the old password
    record_audit(tx, f"staff:{invited.id}", "link_used")
    return True


def invite_again(tx: Transaction, staff_id: str, *, actor: str = CONSOLE) -> Invitation:
    """Return a new link for 72 hours; revoke earlier links and clear failed sign-ins.

    The password stays valid until the link is used. NotFound if the account is unknown or
    disabled.
    """
    person = known(find_staff(tx, staff_id))
    if person.disabled_at is not None:
        raise NotFound
    use_invitations(tx, staff_id)
    clear_failures(tx, account_hash(person.name))
    record_audit(tx, actor, "link_made", person=staff_id)
    return invite(tx, staff_id)


def disable_staff(tx: Transaction, staff_id: str, *, actor: str = CONSOLE) -> None:
    """Disable an account, from the next request on. Idempotent.

    NotFound if unknown; LastOwner if no other owner can sign in.
    """
    person = known(find_staff(tx, staff_id))
    if person.disabled_at is not None:
        return
    _keep_an_owner(tx, person)
    tx.update("staff", staff_id, disabled_at=tx.now)
    use_invitations(tx, staff_id)
    delete_sessions(tx, staff_id)
    record_audit(tx, actor, "person_disabled", person=staff_id)


def enable_staff(tx: Transaction, staff_id: str, *, actor: str = CONSOLE) -> None:
    """Enable an account again, with the same password. Idempotent.

    NotFound if unknown; NameTaken if another enabled account has the name.
    """
    person = known(find_staff(tx, staff_id))
    if person.disabled_at is None:
        return
    check_free(tx, person.name)
    tx.update("staff", staff_id, disabled_at=None)
    record_audit(tx, actor, "person_enabled", person=staff_id)


def change_role(
    tx: Transaction, staff_id: str, seen: str, role: str, *, actor: str = CONSOLE
) -> None:
    """Change the role to one of ROLES, from the next request on. `seen` is the role shown before.

    NotFound if unknown; ChangedMeanwhile if the role is not `seen`; LastOwner.
    """
    person = known(find_staff(tx, staff_id))
    if person.role != seen:
        raise ChangedMeanwhile
    if role == person.role:
        return
    if role != "owner":
        _keep_an_owner(tx, person)
    tx.update("staff", staff_id, role=role)
    record_audit(tx, actor, "role_changed", person=staff_id, before=person.role, after=role)


def unlock(tx: Transaction, staff_id: str, *, actor: str = CONSOLE) -> None:
    """Clear the failed sign-ins of an account. NotFound if unknown."""
    clear_failures(tx, account_hash(known(find_staff(tx, staff_id)).name))
    record_audit(tx, actor, "unlocked", person=staff_id)


def end_session(tx: Transaction, staff_id: str, session_id: str, *, actor: str) -> None:
    """End one session of an account. NotFound if it has already ended."""
    if not delete_session(tx, staff_id, session_id):
        raise NotFound
    record_audit(tx, actor, "session_ended", person=staff_id)


def end_sessions(tx: Transaction, staff_id: str, *, actor: str) -> int:
    """End all sessions of an account. Returns their number."""
    ended = delete_sessions(tx, staff_id)
    record_audit(tx, actor, "sessions_ended", person=staff_id, sessions=ended)
    return ended


def _keep_an_owner(tx: Transaction, person: StaffMember) -> None:
    """Raise LastOwner if `person` is the only owner who can sign in."""
    others = any(
        p.role == "owner" and p.has_password and p.disabled_at is None and p.id != person.id
        for p in list_staff(tx)
    )
    if person.role == "owner" and person.has_password and not others:
        raise LastOwner
