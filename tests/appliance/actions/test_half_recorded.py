"""Of many rows that are written at once none stays when one of them is refused."""

import apsw
import pytest

from appliance.actions.announce import queue_event
from appliance.actions.record_attempts import record_attempts
from appliance.actions.register_endpoint import register_endpoint
from appliance.model.delivery import AttemptRecord, Outcome


def delivered(endpoint_id, seq):
    return AttemptRecord(
        delivery_seq=seq,
        endpoint_id=endpoint_id,
        started_at=1,
        duration_ms=2,
        outcome=Outcome("done", "delivered", 200),
        state="delivered",
        attempts=1,
        due_at=3,
        due_uptime=None,
    )


async def test_a_batch_of_outcomes_that_is_refused_leaves_no_half_of_it(box):
    def queue(tx):
        endpoint, _ = register_endpoint(
            tx, box.live.keyring, "https://receiver.example/", ("webhook.test",)
        )
        queue_event(tx, "webhook.test", None, [endpoint.id])
        return endpoint.id

    database = box.live.database
    endpoint_id = await database.write(queue)

    with pytest.raises(apsw.ConstraintError):
        await database.write(record_attempts, "boot", [delivered(endpoint_id, n) for n in (1, 99)])

    def read(reader):
        return reader.row("SELECT (SELECT count(*) FROM attempt), state FROM delivery")

    assert database.peek(read) == (0, "pending")
    await database.write(record_attempts, "boot", [delivered(endpoint_id, 1)])
    assert database.peek(read) == (1, "delivered")
