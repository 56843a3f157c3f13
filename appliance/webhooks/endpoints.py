"""Register, activate and deactivate webhook endpoints (interface, section 2.8)."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from appliance.api_keys import ApiKey
from appliance.core.errors import (
    InvalidEventType,
    NotFound,
    TooManyEndpoints,
    UnknownEventType,
    field_invalid,
)
from appliance.core.tokens import Keyring
from appliance.database.connection import Reader, Transaction, known
from appliance.outbox import EVENT_TYPES, EXTRA_TYPES, queue_event
from appliance.staff.audit_log import CONSOLE, record_audit
from appliance.webhooks.deliveries import cancel_pending

_CA_MAX = 64 * 1024
_NAME_SHOWN = 40


class Endpoint(Struct, frozen=True):
    """A row of `endpoint`. Secrets are encrypted. Instants are in ms since 1970.

    The TLS certificate is checked against `ca` (PEM) if it is set, otherwise against the system's
    authorities. `clock_skew_s` is the endpoint's clock minus
    the box's. `lineage` is the lineage of the API key that registered the endpoint, or None. If
    `own_refs` is 1, events contain `externalRef` only for reservations created with a key of that
    lineage.
    """

    id: str
    url: str
    events: tuple[str, ...]
    active: bool
    created_at: int
    secret: bytes
    previous_secret: bytes | None
    previous_secret_expires_at: int | None
    failures_in_a_row: int
    last_success_at: int | None
    last_failure_at: int | None
    last_outcome: str | None
    ca: str | None = None
    clock_skew_s: int | None = None
    lineage: str | None = None
    own_refs: int = 0


def parse_ca(text: str) -> str:
    """Return the certificates in `text` as PEM, without the text between them.

    Raises ValidationError if `text` contains no certificate or an unreadable certificate.
    """
    try:
        found = x509.load_pem_x509_certificates(text[:_CA_MAX].encode())
    except ValueError:
        raise field_invalid(
            "ca", "certificates expected in PEM, -----BEGIN CERTIFICATE-----."
        ) from None
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in found)


_SELECT = """
    SELECT id, url, events, active, created_at, secret, previous_secret,
           previous_secret_expires_at, failures_in_a_row, last_success_at, last_failure_at,
           last_outcome, ca, clock_skew_s, lineage, own_refs
    FROM endpoint
"""


def list_endpoints(reader: Reader) -> list[Endpoint]:
    """List all endpoints, including deactivated ones, oldest first."""
    return [_endpoint(*row) for row in reader.rows(f"{_SELECT} ORDER BY created_at, id")]


def list_active_endpoints(reader: Reader) -> list[Endpoint]:
    """List the active endpoints, oldest first."""
    return [endpoint for endpoint in list_endpoints(reader) if endpoint.active]


def get_endpoint(reader: Reader, endpoint_id: str) -> Endpoint:
    """Return the endpoint. Raises NotFound if the id is unknown."""
    return known(reader.one(_endpoint, f"{_SELECT} WHERE id = :id", {"id": endpoint_id}))


def get_own_endpoint(reader: Reader, endpoint_id: str, lineage: str) -> Endpoint:
    """Return the endpoint. Raises NotFound unless an API key of `lineage` registered it."""
    endpoint = get_endpoint(reader, endpoint_id)
    if endpoint.lineage != lineage:
        raise NotFound
    return endpoint


def _endpoint(id_: str, url: str, events: str, active: int, *rest: Any) -> Endpoint:
    return Endpoint(id_, url, tuple(json.loads(events)), bool(active), *rest)


ACTIVE_MAX = 5


@dataclass(frozen=True, slots=True)
class EndpointsChanged:
    """Change notice: an endpoint was created or changed, or deliveries were replayed or deleted.

    Listeners reload the endpoint's row and its deliveries.
    """

    endpoint_id: str


def parse_event_types(value: object) -> tuple[str, ...]:
    """Parse a request's `events` member into event types without duplicates. None means all six.

    Raises InvalidEventType for an empty list, an unknown type, or a value that is not a list.
    """
    if value is None:
        return EVENT_TYPES
    known = (*EVENT_TYPES, *EXTRA_TYPES)
    if not isinstance(value, list) or not value:
        raise InvalidEventType(field="events", allowed=", ".join(known))
    for index, name in enumerate(value):
        if name not in known:
            shown = json.dumps(name)[:_NAME_SHOWN]
            raise UnknownEventType(field=f"events[{index}]", name=shown, allowed=", ".join(known))
    return tuple(dict.fromkeys(value))


def register_endpoint(
    tx: Transaction, keyring: Keyring, url: str, events: tuple[str, ...],
    *, lineage: str | None = None, actor: str = CONSOLE,
) -> tuple[Endpoint, str]:  # fmt: skip
    """Create an endpoint, and return it with its secret.

    The caller must have checked `url` with the egress guard. `lineage` is the registering API
    key's lineage, if any. Raises TooManyEndpoints if 5 endpoints are active.
    """
    _check_active_limit(tx)
    endpoint_id, secret = tx.new_id(), tx.tokens.new_webhook_secret()
    wrapped = keyring.wrap(secret.encode(), tx.tokens.random_bytes(12))
    tx.insert(
        "endpoint",
        {"id": endpoint_id, "url": url, "events": json.dumps(events), "active": 1,
         "created_at": tx.now, "lineage": lineage, "secret": wrapped},
    )  # fmt: skip
    record_audit(tx, actor, "endpoint_registered", endpoint=endpoint_id)
    tx.notices.append(EndpointsChanged(endpoint_id))
    return get_endpoint(tx, endpoint_id), secret


def restrict_references(
    tx: Transaction, endpoint_id: str, *, own_refs: bool, actor: str = CONSOLE
) -> None:
    """Choose whether events contain `externalRef` only for the endpoint's own reservations.

    An endpoint's own reservations are those created with a key of its lineage. The choice takes
    effect with the next attempt. Raises NotFound if the endpoint is unknown.
    """
    if get_endpoint(tx, endpoint_id).own_refs != int(own_refs):
        _change(tx, endpoint_id, "endpoint_references_chosen", actor, own_refs=int(own_refs))


def choose_events(
    tx: Transaction, endpoint_id: str, events: tuple[str, ...], *, actor: str = CONSOLE
) -> None:
    """Subscribe the endpoint to `events` only. Its pending deliveries are kept.

    Raises NotFound if the endpoint is unknown.
    """
    if get_endpoint(tx, endpoint_id).events != events:
        _change(tx, endpoint_id, "endpoint_events_chosen", actor, events=json.dumps(events))


def send_test_event(
    tx: Transaction, endpoint_id: str | None, event_type: str = "webhook.test"
) -> list[str]:
    """Queue an event with sample data for one endpoint. Return the delivery ids.

    If `endpoint_id` is None, queue it for all endpoints. Active endpoints get the event even if
    they do not subscribe to its type. Deactivated endpoints do not get it. Raises NotFound if the
    endpoint is unknown.
    """
    chosen = list_active_endpoints(tx) if endpoint_id is None else [get_endpoint(tx, endpoint_id)]
    receiving = [endpoint.id for endpoint in chosen if endpoint.active]
    return queue_event(tx, event_type, None, receiving) if receiving else []


def deactivate_endpoint(tx: Transaction, endpoint_id: str, *, actor: str = CONSOLE) -> None:
    """Deactivate the endpoint and cancel its pending deliveries. Idempotent.

    Raises NotFound if the endpoint is unknown.
    """
    if get_endpoint(tx, endpoint_id).active:
        _change(tx, endpoint_id, "endpoint_deactivated", actor, active=0)
        cancel_pending(tx, endpoint_id)


def deactivate_by_key(tx: Transaction, endpoint_id: str, key: ApiKey) -> None:
    """Deactivate the endpoint on behalf of an API key. Idempotent.

    Raises NotFound unless a key of the same lineage registered the endpoint.
    """
    get_own_endpoint(tx, endpoint_id, key.lineage)
    deactivate_endpoint(tx, endpoint_id, actor=f"key:{key.id}")


def edit_by_key(
    tx: Transaction, endpoint_id: str, key: ApiKey,
    *, url: str | None, events: tuple[str, ...] | None, active: bool | None,
) -> Endpoint:  # fmt: skip
    """Change the endpoint on behalf of an API key. None leaves a member unchanged.

    The caller must have checked `url` with the egress guard. Pending deliveries go to the new URL;
    an authority that was trusted for the old one no longer is. Raises NotFound unless a key of
    the same lineage registered the endpoint, and TooManyEndpoints if it is activated beside 5.
    """
    endpoint, actor = get_own_endpoint(tx, endpoint_id, key.lineage), f"key:{key.id}"
    if url is not None and url != endpoint.url:
        _change(tx, endpoint_id, "endpoint_url_changed", actor, url=url, ca=None)
    if events is not None:
        choose_events(tx, endpoint_id, events, actor=actor)
    if active is not None:
        (activate_endpoint if active else deactivate_endpoint)(tx, endpoint_id, actor=actor)
    return get_endpoint(tx, endpoint_id)


_OVERLAP_MS = 24 * 3600 * 1000


def roll_by_key(
    tx: Transaction, keyring: Keyring, endpoint_id: str, key: ApiKey
) -> tuple[str, int]:
    """Roll the secret on behalf of an API key. Return it, and when the previous one expires.

    Raises NotFound unless a key of the same lineage registered the endpoint.
    """
    get_own_endpoint(tx, endpoint_id, key.lineage)
    secret = roll_secret(tx, keyring, endpoint_id, actor=f"key:{key.id}")
    return secret, tx.now + _OVERLAP_MS


def find_failing_since(reader: Reader, endpoint: Endpoint) -> int | None:
    """Return when the first of the failures in a row was (ms since 1970), or None."""
    if not endpoint.failures_in_a_row:
        return None
    sql = """SELECT min(a.at) FROM delivery d JOIN attempt a ON a.delivery_seq = d.seq
             WHERE d.endpoint_id = :id AND a.charged AND a.outcome <> 'delivered'
                 AND a.at >= :since"""
    since = endpoint.last_success_at or 0
    at: int | None = reader.value(sql, {"id": endpoint.id, "since": since})
    return endpoint.last_failure_at if at is None else at


def roll_secret(
    tx: Transaction, keyring: Keyring, endpoint_id: str, *, actor: str = CONSOLE
) -> str:
    """Issue and return a new secret. The previous secret stays in use alongside it for 24 hours.

    At most two secrets are in use at a time. If the secret is rolled again within 24 hours, the
    oldest secret is revoked immediately. Raises NotFound if the endpoint is unknown.
    """
    endpoint = get_endpoint(tx, endpoint_id)
    secret = tx.tokens.new_webhook_secret()
    wrapped = keyring.wrap(secret.encode(), tx.tokens.random_bytes(12))
    _change(
        tx, endpoint_id, "endpoint_secret_rolled", actor, secret=wrapped,
        previous_secret=endpoint.secret, previous_secret_expires_at=tx.now + _OVERLAP_MS,
    )  # fmt: skip
    return secret


def revoke_old_secret(tx: Transaction, endpoint_id: str, *, actor: str = CONSOLE) -> bool:
    """Stop signing with the previous secret now. Returns False if none was in use.

    Raises NotFound if the endpoint is unknown.
    """
    endpoint = get_endpoint(tx, endpoint_id)
    if endpoint.previous_secret is None:
        return False
    _change(
        tx, endpoint_id, "endpoint_old_secret_revoked", actor,
        previous_secret=None, previous_secret_expires_at=None,
    )  # fmt: skip
    return (endpoint.previous_secret_expires_at or 0) > tx.now


def trust_receiver(tx: Transaction, endpoint_id: str, ca: str | None) -> None:
    """Trust only the authorities in `ca` (see `parse_ca`), or the system's if it is None.

    Verification cannot be disabled. Takes effect with the next connection. Raises NotFound if the
    endpoint is unknown, and ValidationError if `ca` is given and the URL is plain http.
    """
    endpoint = get_endpoint(tx, endpoint_id)
    if ca is not None and endpoint.url[:5].lower() == "http:":
        raise field_invalid("url", "this receiver has no certificate: it uses plain http.")
    tx.update("endpoint", endpoint_id, ca=ca)
    tx.notices.append(EndpointsChanged(endpoint_id))


def register_with_room(
    tx: Transaction, /, is_echo_receiver: Callable[[str], bool], keyring: Keyring, url: str,
    events: tuple[str, ...], **more: Any,
) -> tuple[Endpoint, str]:  # fmt: skip
    """Register an endpoint. If 5 are active, first deactivate the oldest echo receiver.

    `is_echo_receiver` returns whether a URL is one of the sandbox's echo receivers.
    """
    active = list_active_endpoints(tx)
    echo = next((endpoint for endpoint in active if is_echo_receiver(endpoint.url)), None)
    if len(active) >= ACTIVE_MAX and echo is not None:
        deactivate_endpoint(tx, echo.id, actor="box")
    return register_endpoint(tx, keyring, url, events, **more)


def register_by_key(
    tx: Transaction, /, is_echo_receiver: Callable[[str], bool], keyring: Keyring, url: str,
    events: tuple[str, ...] | None, key: ApiKey,
) -> tuple[Endpoint, str | None]:  # fmt: skip
    """Register an endpoint on behalf of an API key, as `register_with_room` does.

    If the key's lineage has an active endpoint with this URL, return that one and None, because
    a secret is shown only once. Unless `events` is None, subscribe it to `events`.
    """
    actor, line = f"key:{key.id}", key.lineage
    same = [e for e in list_active_endpoints(tx) if (e.url, e.lineage) == (url, line)]
    if not same:
        return register_with_room(
            tx, is_echo_receiver, keyring, url, events or EVENT_TYPES, lineage=line, actor=actor
        )
    if events is not None:
        choose_events(tx, same[0].id, events, actor=actor)
    return get_endpoint(tx, same[0].id), None


def activate_endpoint(tx: Transaction, endpoint_id: str, *, actor: str = CONSOLE) -> None:
    """Activate the endpoint. Idempotent.

    The caller must have checked its URL with the egress guard. Cancelled deliveries stay cancelled
    until they are replayed. Raises NotFound if the endpoint is unknown, and TooManyEndpoints if 5
    are active.
    """
    if get_endpoint(tx, endpoint_id).active:
        return
    _check_active_limit(tx)
    _change(tx, endpoint_id, "endpoint_activated", actor, active=1)


def _check_active_limit(tx: Transaction) -> None:
    """Raise TooManyEndpoints if 5 endpoints are active."""
    if tx.value("SELECT count(*) FROM endpoint WHERE active = 1") >= ACTIVE_MAX:
        raise TooManyEndpoints


def _change(tx: Transaction, endpoint_id: str, what: str, actor: str, **columns: Any) -> None:
    """Update columns, record the change in the audit log as `what`, and notify the dispatcher."""
    tx.update("endpoint", endpoint_id, **columns)
    record_audit(tx, actor, what, endpoint=endpoint_id)
    tx.notices.append(EndpointsChanged(endpoint_id))
