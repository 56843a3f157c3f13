"""Record attempts: what came of many deliveries, in one transaction."""

from collections.abc import Sequence

from appliance.clock_trust import ClockMark
from appliance.model.delivery import AttemptRecord
from appliance.store.clock_marks import put_clock_mark
from appliance.store.connection import Transaction
from appliance.store.deliveries import insert_attempts, list_forgotten, move_deliveries
from appliance.store.endpoints import record_health
from appliance.store.failed_requests import drop_failed_requests, keep_failed_requests


def record_attempts(
    tx: Transaction, boot: str, records: Sequence[AttemptRecord], mark: ClockMark | None = None
) -> None:
    """Log each attempt, move its delivery, and note how its endpoint is doing.

    `mark` is written along, when it is time to. Of a guest who was erased while an attempt was
    under way nothing is quoted.
    """
    forgotten = list_forgotten(tx, [record.delivery_seq for record in records])
    records = [r.unquoted() if r.delivery_seq in forgotten else r for r in records]
    insert_attempts(tx, records)
    move_deliveries(tx, boot, records)
    keep_failed_requests(tx, [record for record in records if record.request is not None])
    drop_failed_requests(tx, [r.delivery_seq for r in records if r.retried and r.request is None])
    for endpoint_id in dict.fromkeys(record.endpoint_id for record in records):
        _record_health(tx, endpoint_id, [r for r in records if r.endpoint_id == endpoint_id])
    if mark is not None:
        put_clock_mark(tx, mark)


def _record_health(tx: Transaction, endpoint_id: str, records: list[AttemptRecord]) -> None:
    """What was our own fault says nothing about an endpoint."""
    outcomes = [r.outcome for r in records if r.outcome is not None and r.outcome.charged]
    if not outcomes:
        return
    failures, recovered = 0, False
    for outcome in outcomes:
        if outcome.delivered:
            failures, recovered = 0, True
        else:
            failures += 1
    skews = [skew for record in records if (skew := record.clock_skew_s) is not None]
    record_health(
        tx,
        endpoint_id,
        failures=failures,
        recovered=recovered,
        last_outcome=outcomes[-1].code,
        clock_skew_s=skews[-1] if skews else None,
    )
