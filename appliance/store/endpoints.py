"""Rows of `endpoint`: partners' webhook receivers."""

import json
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


def record_health(
    tx: Transaction, endpoint_id: str,
    *, failures: int, recovered: bool, last_outcome: str, clock_skew_s: int | None = None,
) -> None:  # fmt: skip
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
        {"id": endpoint_id, "failures": failures, "recovered": int(recovered), "now": tx.now,
         "last_outcome": last_outcome, "clock_skew_s": clock_skew_s},
    )  # fmt: skip


def _endpoint(id_: str, url: str, events: str, active: int, *rest: Any) -> Endpoint:
    return Endpoint(id_, url, tuple(json.loads(events)), bool(active), *rest)
