"""Rotate a key: a successor of the same line (docs/decisions/keys-and-limits.md)."""

from appliance.actions.issue_key import IssuedKey, issue_key
from appliance.actions.note_security import CONSOLE, note_security
from appliance.environment import EnvironmentName
from appliance.store.connection import Transaction, known
from appliance.store.keys import find_key

CHANGE_OVER_MS = 24 * 3600 * 1000


def rotate_key(
    tx: Transaction, environment_name: EnvironmentName, key_id: str,
    *, ends: bool, actor: str = CONSOLE,
) -> IssuedKey:  # fmt: skip
    """A fresh key with the name, the scopes and the line of another. NotFound if unknown.

    If it `ends`, the old one is refused in 24 hours; else it works until it is revoked.
    """
    old = known(find_key(tx, key_id))
    issued = issue_key(tx, environment_name, old.name, old.scopes, successor_of=key_id, actor=actor)
    if ends:
        at = tx.now + CHANGE_OVER_MS
        sql = """UPDATE api_key SET revoked_at = -:at
                 WHERE id = :id AND (revoked_at IS NULL OR revoked_at < -:at)"""
        tx.execute(sql, {"id": key_id, "at": at})  # one that ends before keeps its instant
        note_security(tx, actor, "key_revoked", key=key_id, name=old.name, at=at)
    return issued
