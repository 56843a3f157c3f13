"""The queries that run at every turn of the dispatcher touch only the rows they need."""

import pytest

from appliance.actions.announce import queue_event
from appliance.actions.register_endpoint import register_endpoint
from appliance.store.deliveries import (
    cancel_pending,
    find_next_retry,
    find_pending,
    page_retries,
    page_untried,
)
from tests.appliance.store.query_plans import plans_of


@pytest.fixture
async def endpoint_id(box):
    def queue(tx):
        endpoint, _ = register_endpoint(
            tx, box.live.keyring, "https://receiver.example/", ("webhook.test",)
        )
        for _ in range(9):
            queue_event(tx, "webhook.test", None, [endpoint.id])
        for seq, due in ((4, 700), (5, 600), (6, 600), (7, 900)):
            tx.execute("UPDATE delivery SET due_uptime = :due WHERE seq = :seq",
                       {"due": due, "seq": seq})  # fmt: skip
        tx.execute("UPDATE delivery SET state = 'delivered' WHERE seq IN (1, 5)")
        return endpoint.id

    return await box.live.database.write(queue)


def seqs(deliveries):
    return [delivery.seq for delivery in deliveries]


async def test_the_untried_come_in_the_order_they_were_written(box, endpoint_id):
    peek = box.live.database.peek

    assert seqs(peek(page_untried, endpoint_id, 0, 10)) == [2, 3, 8, 9]
    assert seqs(peek(page_untried, endpoint_id, 2, 2)) == [3, 8]
    assert seqs(peek(page_untried, "another endpoint", 0, 10)) == []


async def test_retries_come_when_they_are_due_the_longest_due_first(box, endpoint_id):
    peek = box.live.database.peek

    assert seqs(peek(page_retries, endpoint_id, 599, 10)) == []
    assert seqs(peek(page_retries, endpoint_id, 700, 10)) == [6, 4]
    assert peek(find_next_retry, endpoint_id, 599) == 600
    assert peek(find_next_retry, endpoint_id, 600) == 700
    assert peek(find_next_retry, endpoint_id, 900) is None


async def test_a_finished_delivery_is_no_longer_pending(box, endpoint_id):
    assert box.live.database.peek(find_pending, 1) is None
    assert box.live.database.peek(find_pending, 2).seq == 2


async def test_cancelling_takes_every_pending_delivery_and_no_other(box, endpoint_id):
    assert await box.live.database.write(cancel_pending, endpoint_id) == 7
    assert await box.live.database.write(cancel_pending, endpoint_id) == 0


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        (page_untried, ("e", 0, 8)),
        (page_retries, ("e", 1000, 8)),
        (find_next_retry, ("e", 1000)),
        (cancel_pending, ("e",)),
    ],
)
async def test_nothing_is_scanned_or_sorted(box, query, arguments):
    plans = await plans_of(box.live.database, query, *arguments)

    assert plans
    assert all("SCAN" not in line and "TEMP B-TREE" not in line for line in plans), plans
    assert any("delivery_due" in line for line in plans)
