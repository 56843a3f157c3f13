"""Accept an invitation: the person has chosen a password, and the link is spent."""

from appliance.actions.note_security import note_security
from appliance.store.connection import Transaction
from appliance.store.sessions import delete_sessions
from appliance.store.staff import find_invited, set_password, use_invitations


def accept_invitation(tx: Transaction, link_hash: bytes, password_hash: str) -> bool:
    """Set the password of whom the link with this SHA-256 invites; False when none is."""
    invited = find_invited(tx, link_hash)
    if invited is None:
        return False
    set_password(tx, invited.id, password_hash)
    use_invitations(tx, invited.id)
    delete_sessions(tx, invited.id)  # whoever had the old password is out
    note_security(tx, f"staff:{invited.id}", "link_used")
    return True
