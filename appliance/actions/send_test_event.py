"""Send a test event: `POST /v1/webhooks/test` (interface, section 4)."""

from appliance.actions.announce import queue_event
from appliance.store.connection import Transaction
from appliance.store.endpoints import get_endpoint, list_active_endpoints


def send_test_event(tx: Transaction, endpoint_id: str | None) -> list[str]:
    """Queue `webhook.test` to one endpoint or all, subscribed or not; the delivery ids.

    Only active ones receive it. NotFound for an unknown `endpoint_id`.
    """
    chosen = list_active_endpoints(tx) if endpoint_id is None else [get_endpoint(tx, endpoint_id)]
    receiving = [endpoint.id for endpoint in chosen if endpoint.active]
    return queue_event(tx, "webhook.test", None, receiving) if receiving else []
