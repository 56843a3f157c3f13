"""Register an endpoint, and let one that was only lent give way to it."""

from collections.abc import Callable
from typing import Any

from appliance.actions.deactivate_endpoint import deactivate_endpoint
from appliance.actions.register_endpoint import ACTIVE_MAX, register_endpoint
from appliance.model.endpoint import Endpoint
from appliance.store.connection import Transaction
from appliance.store.endpoints import list_active_endpoints
from appliance.tokens import Keyring

BOX = "box"


def register_with_room(
    tx: Transaction, /, is_lent: Callable[[str], bool], keyring: Keyring, url: str,
    events: tuple[str, ...], **more: Any,
) -> tuple[Endpoint, str]:  # fmt: skip
    """As `register_endpoint`, but of 5 active ones the oldest that `is_lent` ends first.

    `is_lent` knows the URLs of the sandbox's echo receivers.
    """
    active = list_active_endpoints(tx)
    lent = next((endpoint for endpoint in active if is_lent(endpoint.url)), None)
    if len(active) >= ACTIVE_MAX and lent is not None:
        deactivate_endpoint(tx, lent.id, actor=BOX)
    return register_endpoint(tx, keyring, url, events, **more)
