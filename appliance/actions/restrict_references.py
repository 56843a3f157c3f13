"""Restrict an endpoint to its own partner's references: as the venue's staff may, in the portal."""

from appliance.actions.note_security import CONSOLE, note_security
from appliance.store.connection import Transaction
from appliance.store.endpoints import get_endpoint, set_own_refs


def restrict_references(
    tx: Transaction, endpoint_id: str, *, own_refs: bool, actor: str = CONSOLE
) -> None:
    """From the next attempt on it is told the `externalRef` of its own key line alone, or of all.

    NotFound if unknown.
    """
    if get_endpoint(tx, endpoint_id).own_refs == int(own_refs):
        return
    set_own_refs(tx, endpoint_id, own_refs=own_refs)
    note_security(tx, actor, "endpoint_references_chosen", endpoint=endpoint_id)
