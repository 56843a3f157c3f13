"""Revoke an API key: the next call that carries it is refused (contract section 5.8)."""

from appliance.store.connection import Transaction
from appliance.store.keys import find_key, mark_key_revoked


def revoke_key(tx: Transaction, key_id: str) -> bool:
    """Revoke for good; False when there is no such key. A revoked one stays as it is."""
    if find_key(tx, key_id) is None:
        return False
    mark_key_revoked(tx, key_id)
    return True
