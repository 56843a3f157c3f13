"""Activate an endpoint again: it receives what happens from now on (docs/decisions/webhooks.md)."""

from appliance.actions.deactivate_endpoint import SWITCHED_OFF
from appliance.actions.note_security import CONSOLE, note_security
from appliance.actions.register_endpoint import ACTIVE_MAX, EndpointsChanged
from appliance.errors import TooManyEndpoints
from appliance.store.conditions import drop_condition
from appliance.store.connection import Transaction
from appliance.store.endpoints import count_active, get_endpoint


def activate_endpoint(tx: Transaction, endpoint_id: str, *, actor: str = CONSOLE) -> None:
    """Switch it on; twice is once. The guard has let its URL pass again.

    What was cancelled stays so until it is replayed. NotFound if unknown, TooManyEndpoints
    when 5 are active.
    """
    if get_endpoint(tx, endpoint_id).active:
        return
    if count_active(tx) >= ACTIVE_MAX:
        raise TooManyEndpoints
    tx.update("endpoint", endpoint_id, active=1)
    drop_condition(tx, SWITCHED_OFF, endpoint_id)
    note_security(tx, actor, "endpoint_activated", endpoint=endpoint_id)
    tx.notices.append(EndpointsChanged(endpoint_id))
