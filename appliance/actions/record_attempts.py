"""Record attempts: what came of many deliveries, in one transaction."""

from collections.abc import Sequence

from appliance.model.delivery import AttemptRecord
from appliance.store.connection import Transaction
from appliance.store.deliveries import insert_attempts, move_deliveries
from appliance.store.endpoints import record_health


def record_attempts(tx: Transaction, boot: str, records: Sequence[AttemptRecord]) -> None:
    """Log each attempt, move its delivery, and note how its endpoint is doing."""
    insert_attempts(tx, records)
    move_deliveries(tx, boot, records)
    for endpoint_id in dict.fromkeys(record.endpoint_id for record in records):
        _record_health(tx, endpoint_id, [r for r in records if r.endpoint_id == endpoint_id])


def _record_health(tx: Transaction, endpoint_id: str, records: list[AttemptRecord]) -> None:
    outcomes = [record.outcome for record in records if record.outcome is not None]
    if not outcomes:
        return
    failures, recovered = 0, False
    for outcome in outcomes:
        if outcome.delivered:
            failures, recovered = 0, True
        else:
            failures += outcome.charged
    record_health(
        tx,
        endpoint_id,
        failures=failures,
        recovered=recovered,
        last_outcome=outcomes[-1].code,
    )
