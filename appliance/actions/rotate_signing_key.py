"""Rotate the key that signs guest passes: yearly, or at once when it has leaked."""

from appliance.actions.note_security import CONSOLE, note_security
from appliance.model.guest_pass import LAST_GENERATION
from appliance.model.notices import SigningKeyChanged
from appliance.store.connection import Transaction
from appliance.store.readings import find_tonight
from appliance.store.reservations import get_reservation, update_reservation
from appliance.store.signing_keys import add_signing_key
from appliance.store.venue import list_coming
from appliance.tokens import Keyring


def rotate_signing_key(
    tx: Transaction, keyring: Keyring, *, leaked: bool = False, actor: str = CONSOLE
) -> int:
    """Make a new key that signs from now on; its id. Passes already given stay good.

    `leaked`: every older key is worth nothing any more, and each coming reservation gets a
    pass of the next generation, which its link shows by itself. An older pass is `revoked`.
    """
    kid = add_signing_key(tx, keyring)
    tx.notices.append(SigningKeyChanged())
    note_security(tx, actor, "signing_key_rotated", kid=kid, leaked=leaked)
    if leaked:
        sql = """UPDATE signing_key SET leaked_at = :now
                 WHERE retired_at IS NOT NULL AND leaked_at IS NULL"""
        tx.execute(sql, {"now": tx.now})
        for coming in list_coming(tx, find_tonight(tx).isoformat()):
            generation = get_reservation(tx, coming.id).generation
            raised = min(generation + 1, LAST_GENERATION)
            update_reservation(tx, coming.id, generation=raised)
    return kid
