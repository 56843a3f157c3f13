"""Deactivate an endpoint: it receives nothing more, not even what was queued for it."""

from appliance.actions.note_security import CONSOLE, note_security
from appliance.actions.register_endpoint import EndpointsChanged
from appliance.model.api_key import ApiKey
from appliance.store.conditions import Condition, drop_condition, put_condition
from appliance.store.connection import Transaction
from appliance.store.deliveries import cancel_pending
from appliance.store.endpoints import get_endpoint

SWITCHED_OFF = "endpoint_switched_off"


def deactivate_endpoint(tx: Transaction, endpoint_id: str, *, actor: str = CONSOLE) -> None:
    """Switch it off and cancel its queue; twice is once. NotFound if unknown.

    The venue's staff do it so: what they were alerted to is settled.
    """
    drop_condition(tx, SWITCHED_OFF, endpoint_id)
    _switch_off(tx, endpoint_id, actor)


def deactivate_by_key(tx: Transaction, endpoint_id: str, key: ApiKey) -> None:
    """The same for a partner. The venue is alerted when it is not of that key's own line."""
    endpoint = get_endpoint(tx, endpoint_id)
    if endpoint.active and endpoint.lineage != key.lineage:
        sentence = f"the API key {key.name} deactivated a webhook endpoint of somebody else"
        put_condition(tx, Condition(SWITCHED_OFF, endpoint_id, tx.now, sentence))
    _switch_off(tx, endpoint_id, f"key:{key.id}")


def _switch_off(tx: Transaction, endpoint_id: str, actor: str) -> None:
    if not get_endpoint(tx, endpoint_id).active:
        return
    tx.update("endpoint", endpoint_id, active=0)
    cancel_pending(tx, endpoint_id)
    note_security(tx, actor, "endpoint_deactivated", endpoint=endpoint_id)
    tx.notices.append(EndpointsChanged(endpoint_id))
