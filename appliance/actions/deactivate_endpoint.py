"""Deactivate an endpoint: it receives nothing more, not even what was queued for it."""

from appliance.actions.note_security import CONSOLE, note_security
from appliance.actions.register_endpoint import EndpointsChanged
from appliance.store.connection import Transaction
from appliance.store.deliveries import cancel_pending
from appliance.store.endpoints import get_endpoint, set_active


def deactivate_endpoint(tx: Transaction, endpoint_id: str, *, actor: str = CONSOLE) -> None:
    """Switch it off and cancel its queue (decisions.md); twice is once. NotFound if unknown."""
    if not get_endpoint(tx, endpoint_id).active:
        return
    set_active(tx, endpoint_id, active=False)
    cancel_pending(tx, endpoint_id)
    note_security(tx, actor, "endpoint_deactivated", endpoint=endpoint_id)
    tx.notices.append(EndpointsChanged(endpoint_id))
