"""Rows of `endpoint`: partners' webhook receivers."""

import json
from collections.abc import Sequence
from typing import Any

from appliance.model.endpoint import Endpoint
from appliance.store.connection import Reader, Transaction, known

_SELECT = """
    SELECT id, url, events, active, created_at, secret, previous_secret,
           previous_secret_expires_at, failures_in_a_row, last_success_at, last_failure_at,
           last_outcome, ca, pin, clock_skew_s, lineage, own_refs
    FROM endpoint
"""


def list_endpoints(reader: Reader) -> list[Endpoint]:
    """Every endpoint, deactivated ones too, oldest first."""
    return [_endpoint(*row) for row in reader.rows(f"{_SELECT} ORDER BY created_at, id")]


def list_active_endpoints(reader: Reader) -> list[Endpoint]:
    """The endpoints that receive, oldest first."""
    return [endpoint for endpoint in list_endpoints(reader) if endpoint.active]


def get_endpoint(reader: Reader, endpoint_id: str) -> Endpoint:
    """The endpoint of that id, or NotFound."""
    return known(reader.one(_endpoint, f"{_SELECT} WHERE id = :id", {"id": endpoint_id}))


def count_active(reader: Reader) -> int:
    """How many endpoints are active."""
    return int(reader.value("SELECT count(*) FROM endpoint WHERE active = 1"))


def set_active(tx: Transaction, endpoint_id: str, *, active: bool) -> None:
    """Switch an endpoint on or off."""
    sql = "UPDATE endpoint SET active = :active WHERE id = :id"
    tx.execute(sql, {"active": int(active), "id": endpoint_id})


def set_events(tx: Transaction, endpoint_id: str, events: Sequence[str]) -> None:
    """What an endpoint hears of."""
    sql = "UPDATE endpoint SET events = :events WHERE id = :id"
    tx.execute(sql, {"events": json.dumps(list(events)), "id": endpoint_id})


def set_own_refs(tx: Transaction, endpoint_id: str, *, own_refs: bool) -> None:
    """Whether an endpoint is told the externalRef of its own key line alone."""
    sql = "UPDATE endpoint SET own_refs = :own_refs WHERE id = :id"
    tx.execute(sql, {"own_refs": int(own_refs), "id": endpoint_id})


def set_secrets(
    tx: Transaction, endpoint_id: str, secret: bytes, previous: bytes, previous_expires_at: int
) -> None:
    """Give an endpoint a new wrapped secret; the one before signs too until it expires."""
    tx.execute(
        """UPDATE endpoint SET secret = :secret, previous_secret = :previous,
               previous_secret_expires_at = :expires_at
           WHERE id = :id""",
        {
            "secret": secret,
            "previous": previous,
            "expires_at": previous_expires_at,
            "id": endpoint_id,
        },
    )


def forget_previous_secret(tx: Transaction, endpoint_id: str) -> None:
    """Erase the secret before the present one."""
    sql = """UPDATE endpoint SET previous_secret = NULL, previous_secret_expires_at = NULL
             WHERE id = :id"""
    tx.execute(sql, {"id": endpoint_id})


def set_certificates(tx: Transaction, endpoint_id: str, ca: str | None, pin: bytes | None) -> None:
    """What the endpoint's certificate is checked against; both None: the machine's own list."""
    sql = "UPDATE endpoint SET ca = :ca, pin = :pin WHERE id = :id"
    tx.execute(sql, {"ca": ca, "pin": pin, "id": endpoint_id})


def record_health(
    tx: Transaction,
    endpoint_id: str,
    *,
    failures: int,
    recovered: bool,
    last_outcome: str,
    clock_skew_s: int | None = None,
) -> None:
    """How an endpoint did lately: `failures` since its last success, if it `recovered` then.

    `clock_skew_s` None: no answer told its time.
    """
    tx.execute(
        """UPDATE endpoint
           SET failures_in_a_row =
                   CASE WHEN :recovered THEN 0 ELSE failures_in_a_row END + :failures,
               last_success_at = CASE WHEN :recovered THEN :now ELSE last_success_at END,
               last_failure_at = CASE WHEN :failures THEN :now ELSE last_failure_at END,
               last_outcome = :last_outcome,
               clock_skew_s = coalesce(:clock_skew_s, clock_skew_s)
           WHERE id = :id""",
        {
            "id": endpoint_id,
            "failures": failures,
            "recovered": int(recovered),
            "now": tx.now,
            "last_outcome": last_outcome,
            "clock_skew_s": clock_skew_s,
        },
    )


def _endpoint(id_: str, url: str, events: str, active: int, *rest: Any) -> Endpoint:
    return Endpoint(id_, url, tuple(json.loads(events)), bool(active), *rest)
