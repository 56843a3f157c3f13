"""Revoke an API key: the next call that carries it is refused (interface, section 5.8)."""

from appliance.actions.note_security import CONSOLE, note_security
from appliance.store.connection import Transaction
from appliance.store.keys import find_key, mark_key_revoked


def revoke_key(tx: Transaction, key_id: str, *, actor: str = CONSOLE) -> bool:
    """Revoke for good; False when there is no such key. A revoked one stays as it is.

    One that has changed over by this clock may not have by the box's, which a command does not ask.
    """
    key = find_key(tx, key_id)
    if key is None:
        return False
    if key.revoked_at is None or key.changes_over:
        mark_key_revoked(tx, key_id)
        note_security(tx, actor, "key_revoked", key=key_id, name=key.name)
    return True
