"""The rows after a batch of outcomes was recorded."""

import apsw
import pytest

from appliance.outbox import queue_event
from appliance.webhooks.deliveries import AttemptRecord, Outcome
from appliance.webhooks.endpoints import register_endpoint
from appliance.webhooks.recorder import record_attempts

DELIVERED = Outcome("done", "delivered", 200, "93.184.216.34", "ok")
FAILED = Outcome("wait", "timeout")
OFFLINE = Outcome("connect", "box_offline", charged=False)


@pytest.fixture
async def endpoint_id(box):
    def queue(tx):
        endpoint, _ = register_endpoint(
            tx, box.live.keyring, "https://receiver.example/", ("webhook.test",)
        )
        queue_event(tx, "webhook.test", None, [endpoint.id] * 4)
        return endpoint.id

    return await box.live.database.write(queue)


@pytest.fixture
def record(box, endpoint_id):
    """`await record((seq, outcome, state, attempts), …)`: written in one transaction."""

    async def write(*rows):
        records = [
            AttemptRecord(
                delivery_seq=seq,
                endpoint_id=endpoint_id,
                started_at=1,
                duration_ms=2,
                outcome=outcome,
                state=state,
                attempts=attempts,
                due_at=3,
            )
            for seq, outcome, state, attempts in rows
        ]
        await box.live.database.write(record_attempts, records)

    return write


def rows(box, sql):
    return box.live.database.peek(lambda reader: list(reader.rows(sql)))


async def test_each_delivery_gets_the_state_that_follows_from_its_attempt(box, record):
    await record(
        (1, DELIVERED, "delivered", 1), (2, FAILED, "pending", 1), (3, FAILED, "dead", 6)
    )  # fmt: skip

    assert rows(box, "SELECT seq, state, attempts, kind, finished_at FROM delivery") == [
        (1, "delivered", 1, "new", 3),
        (2, "pending", 1, "retry", None),
        (3, "dead", 6, "new", 3),
        (4, "pending", 0, "new", None),
    ]


async def test_attempts_are_numbered_continuously_across_replays(box, record):
    await record((1, FAILED, "pending", 1))
    await record((1, OFFLINE, "pending", 1))
    await record((1, DELIVERED, "delivered", 2))

    assert rows(box, "SELECT delivery_seq, n, outcome, charged FROM attempt") == [
        (1, 1, "timeout", 1),
        (1, 2, "box_offline", 0),
        (1, 3, "delivered", 1),
    ]


async def test_endpoint_health_counts_the_charged_failures_since_the_last_success(box, record):
    health = "SELECT failures_in_a_row, last_outcome FROM endpoint"

    await record((1, FAILED, "pending", 1), (2, FAILED, "pending", 1))
    assert rows(box, health) == [(2, "timeout")]
    await record((3, FAILED, "pending", 1), (4, OFFLINE, "pending", 0))
    assert rows(box, health) == [(3, "timeout")]
    await record((1, DELIVERED, "delivered", 2), (2, FAILED, "pending", 2))
    assert rows(box, health) == [(1, "timeout")]


async def test_a_batch_of_results_that_fails_stores_none_of_them(box, record):
    with pytest.raises(apsw.ConstraintError):
        await record((1, DELIVERED, "delivered", 1), (99, DELIVERED, "delivered", 1))

    assert rows(box, "SELECT 1 FROM attempt") == []
    assert set(rows(box, "SELECT state FROM delivery")) == {("pending",)}
