"""Register an endpoint: a partner names a URL and the events it wants (interface, section 4)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from appliance.actions.announce import EVENT_TYPES
from appliance.actions.note_security import CONSOLE, note_security
from appliance.errors import InvalidEventType, TooManyEndpoints
from appliance.model.endpoint import Endpoint
from appliance.store.connection import Transaction
from appliance.store.endpoints import count_active, get_endpoint
from appliance.tokens import Keyring

ACTIVE_MAX = 5


@dataclass(frozen=True, slots=True)
class EndpointsChanged:
    """A notice after commit: look at this endpoint's row and its deliveries again.

    It appeared, changed, was switched on or off, or has deliveries to be sent once more.
    """

    endpoint_id: str


def parse_event_types(value: object, known: Sequence[str] = EVENT_TYPES) -> tuple[str, ...]:
    """The subscription in `events`, each type once; absent or null is all six.

    InvalidEventType for an empty list, a type that is not `known`, or anything that is no list.
    """
    if value is None:
        return EVENT_TYPES
    if not isinstance(value, list) or not value:
        raise InvalidEventType(field="events")
    for index, name in enumerate(value):
        if name not in known:
            raise InvalidEventType(field=f"events[{index}]")
    return tuple(dict.fromkeys(value))


def register_endpoint(
    tx: Transaction, keyring: Keyring, url: str, events: tuple[str, ...],
    *, lineage: str | None = None, actor: str = CONSOLE,
) -> tuple[Endpoint, str]:  # fmt: skip
    """The new endpoint and its secret, shown this once; the guard has let `url` pass.

    `lineage` is that of the key that registers it, if one does.
    TooManyEndpoints when 5 are active, however many callers try at once.
    """
    if count_active(tx) >= ACTIVE_MAX:
        raise TooManyEndpoints
    endpoint_id, secret = tx.new_id(), tx.tokens.new_webhook_secret()
    wrapped = keyring.wrap(secret.encode(), tx.tokens.random_bytes(12))
    tx.insert(
        "endpoint",
        {"id": endpoint_id, "url": url, "events": json.dumps(events), "active": 1,
         "created_at": tx.now, "lineage": lineage, "secret": wrapped},
    )  # fmt: skip
    note_security(tx, actor, "endpoint_registered", endpoint=endpoint_id)
    tx.notices.append(EndpointsChanged(endpoint_id))
    return get_endpoint(tx, endpoint_id), secret


def restrict_references(
    tx: Transaction, endpoint_id: str, *, own_refs: bool, actor: str = CONSOLE
) -> None:
    """From the next attempt on it is told the `externalRef` of its own key line alone, or of all.

    NotFound if unknown.
    """
    if get_endpoint(tx, endpoint_id).own_refs == int(own_refs):
        return
    tx.update("endpoint", endpoint_id, own_refs=int(own_refs))
    note_security(tx, actor, "endpoint_references_chosen", endpoint=endpoint_id)
    tx.notices.append(EndpointsChanged(endpoint_id))
