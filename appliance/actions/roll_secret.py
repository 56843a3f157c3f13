"""Roll an endpoint's secret: a new one, and a day to change over (docs/decisions/webhooks.md)."""

from appliance.actions.note_security import CONSOLE, note_security
from appliance.actions.register_endpoint import EndpointsChanged
from appliance.store.connection import Transaction
from appliance.store.endpoints import get_endpoint
from appliance.tokens import Keyring

OVERLAP_MS = 24 * 3600 * 1000


def roll_secret(
    tx: Transaction, keyring: Keyring, endpoint_id: str, *, actor: str = CONSOLE
) -> str:
    """The new secret, shown this once. For 24 hours the one before it signs too.

    Never more than two sign: rolled again meanwhile, the oldest stops at once. NotFound if
    the endpoint is unknown.
    """
    endpoint = get_endpoint(tx, endpoint_id)
    secret = tx.tokens.new_webhook_secret()
    wrapped = keyring.wrap(secret.encode(), tx.tokens.random_bytes(12))
    tx.update(
        "endpoint", endpoint_id, secret=wrapped,
        previous_secret=endpoint.secret, previous_secret_expires_at=tx.now + OVERLAP_MS,
    )  # fmt: skip
    note_security(tx, actor, "endpoint_secret_rolled", endpoint=endpoint_id)
    tx.notices.append(EndpointsChanged(endpoint_id))
    return secret


def revoke_old_secret(tx: Transaction, endpoint_id: str, *, actor: str = CONSOLE) -> bool:
    """Let only the present secret sign, at once; False when no other did anyway.

    NotFound if the endpoint is unknown.
    """
    endpoint = get_endpoint(tx, endpoint_id)
    if endpoint.previous_secret is None:
        return False
    tx.update("endpoint", endpoint_id, previous_secret=None, previous_secret_expires_at=None)
    note_security(tx, actor, "endpoint_old_secret_revoked", endpoint=endpoint_id)
    tx.notices.append(EndpointsChanged(endpoint_id))
    return (endpoint.previous_secret_expires_at or 0) > tx.now
