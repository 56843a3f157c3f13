"""Replay a delivery: same id, one attempt now, then the retries (docs/decisions/webhooks.md)."""

from appliance.actions.register_endpoint import EndpointsChanged
from appliance.errors import NotFound
from appliance.house_errors import EndpointIsInactive
from appliance.store.connection import Transaction
from appliance.store.endpoints import get_endpoint
from appliance.store.replays import find_endpoint_of, replay_one


def replay_delivery(tx: Transaction, delivery_id: str) -> bool:
    """Send it once more; False when it is about to be sent anyway, so that twice is once.

    An attempt under way is not joined by a second one: the new one follows it, unless it
    succeeds. NotFound if unknown, EndpointIsInactive if nobody would receive it.
    """
    endpoint_id = find_endpoint_of(tx, delivery_id)
    if endpoint_id is None:
        raise NotFound
    if not get_endpoint(tx, endpoint_id).active:
        raise EndpointIsInactive(state="inactive")
    replayed = replay_one(tx, delivery_id)
    if replayed:
        tx.notices.append(EndpointsChanged(endpoint_id))
    return replayed
