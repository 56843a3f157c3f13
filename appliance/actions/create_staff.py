"""Create a staff member: a name, a role and a one-time link on which the password is set."""

from dataclasses import dataclass

from appliance.actions.note_security import CONSOLE, note_security
from appliance.house_errors import NameTaken
from appliance.store.connection import Transaction
from appliance.store.staff import insert_invitation, list_staff
from appliance.tokens import hash_token

# Long enough for someone who starts on Friday and reads the message on Monday.
INVITATION_MILLISECONDS = 72 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Invitation:
    """Who was invited, and the secret part of the link, which is stored nowhere."""

    staff_id: str
    secret: str


def create_staff(tx: Transaction, name: str, role: str, *, actor: str = CONSOLE) -> Invitation:
    """A person of one of ROLES, without a password. The link is good for 72 hours, once.

    NameTaken when somebody who is still here signs in under that name.
    """
    name = " ".join(name.split())
    check_free(tx, name)
    staff_id = tx.new_id()
    tx.insert("staff", {"id": staff_id, "name": name, "role": role, "created_at": tx.now})
    note_security(tx, actor, "person_invited", person=staff_id, name=name, role=role)
    return invite(tx, staff_id)


def invite(tx: Transaction, staff_id: str) -> Invitation:
    """One more link, good for 72 hours and once."""
    invitation = Invitation(staff_id, tx.tokens.new_link_secret())
    expires_at = tx.now + INVITATION_MILLISECONDS
    insert_invitation(tx, hash_token(invitation.secret), staff_id, expires_at)
    return invitation


def check_free(tx: Transaction, name: str) -> None:
    """NameTaken when somebody who is still here signs in under that name."""
    if any(p.name.casefold() == name.casefold() for p in list_staff(tx) if not p.disabled_at):
        raise NameTaken(name=name)
