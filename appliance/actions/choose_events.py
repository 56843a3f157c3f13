"""Choose the events of an endpoint anew: as the venue's staff may, in the portal."""

import json

from appliance.actions.note_security import CONSOLE, note_security
from appliance.store.connection import Transaction
from appliance.store.endpoints import get_endpoint


def choose_events(
    tx: Transaction, endpoint_id: str, events: tuple[str, ...], *, actor: str = CONSOLE
) -> None:
    """It hears of `events` from the next one on; what is queued is sent. NotFound if unknown."""
    if get_endpoint(tx, endpoint_id).events == events:
        return
    tx.update("endpoint", endpoint_id, events=json.dumps(events))
    note_security(tx, actor, "endpoint_events_chosen", endpoint=endpoint_id)
