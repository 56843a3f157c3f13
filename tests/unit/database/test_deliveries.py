"""The queries of the dispatcher, and the pages of the delivery log."""

import pytest

from appliance.outbox import queue_event
from appliance.webhooks.deliveries import (
    LONGEST_WAIT_MS,
    STATES,
    cancel_pending,
    find_next_retry,
    iterate_new,
    iterate_retries,
)
from appliance.webhooks.delivery_log import DeliveryFilter, page_deliveries
from appliance.webhooks.endpoints import register_endpoint
from tests.unit.arrivals import add_reservation

TYPES = ("reservation.created", "reservation.confirmed", "reservation.checked_in")
EVENTS, ENDPOINTS = 24, 3
MINUTE = 60_000


@pytest.fixture
async def log(box, clock):
    """24 events, one per minute, with deliveries to three endpoints in every state."""
    await box.live.database.write(write_log, clock.now())
    return box.live.database


def write_log(tx, now):
    for endpoint in range(ENDPOINTS):
        tx.insert(
            "endpoint",
            {"id": f"e{endpoint}", "url": f"https://{endpoint}.example/", "events": "[]",
             "active": 1, "created_at": now, "secret": b"wrapped"},
        )  # fmt: skip
    for n in range(5):
        add_reservation(tx, id=f"r{n}", date=f"2026-12-0{n + 1}")
    for n in range(EVENTS):
        event = {"seq": n + 1, "type": TYPES[n % 3], "occurred_at": now + n * MINUTE,
                 "reservation_id": f"r{n % 5}"}  # fmt: skip
        tx.insert("event", event)
        for endpoint in range(ENDPOINTS):
            state = STATES[(n + endpoint) % 4]
            tx.insert(
                "delivery",
                {"id": f"{n}-{endpoint}", "endpoint_id": f"e{endpoint}", "event_seq": n + 1,
                 "state": state, "due_at": now,
                 "finished_at": None if state == "pending" else now},
            )  # fmt: skip


def expected(chosen):
    """Return the ids that match, newest event first, found with a simple loop."""
    return [
        f"{n}-{endpoint}"
        for n in reversed(range(EVENTS))
        for endpoint in reversed(range(ENDPOINTS))
        if chosen.endpoint_id in {None, f"e{endpoint}"}
        and chosen.state in {None, STATES[(n + endpoint) % 4]}
        and chosen.reservation_id in {None, f"r{n % 5}"}
    ]


FILTERS = [
    DeliveryFilter(endpoint_id, state, reservation_id)
    for endpoint_id in (None, "e1", "e9")
    for state in (None, *STATES)
    for reservation_id in (None, "r1", "")
]


async def test_the_pages_together_contain_the_whole_log_in_order_for_every_filter(log):
    for chosen in FILTERS:
        found, before = [], None
        while True:
            page = await log.read(page_deliveries, chosen, before, size=7)
            found += [line.id for line in page.deliveries]
            before = page.older
            if before is None:
                break
            assert len(page.deliveries) == 7

        assert found == expected(chosen), chosen


async def test_new_deliveries_do_not_shift_the_pages(log):
    first = await log.read(page_deliveries, DeliveryFilter(), None, size=5)

    def arrive(tx):
        tx.insert("event", {"seq": 999, "type": TYPES[0], "occurred_at": tx.now})
        tx.insert("delivery", {"id": "new", "endpoint_id": "e0", "event_seq": 999, "due_at": 0})

    await log.write(arrive)
    second = await log.read(page_deliveries, DeliveryFilter(), first.older, size=5)

    both = [line.id for line in (*first.deliveries, *second.deliveries)]
    assert "new" not in both
    assert len(set(both)) == 10


@pytest.fixture
async def endpoint_id(box):
    def queue(tx):
        endpoint, _ = register_endpoint(
            tx, box.live.keyring, "https://receiver.example/", ("webhook.test",)
        )
        for _ in range(9):
            queue_event(tx, "webhook.test", None, [endpoint.id])
        for seq, due in ((4, 700), (5, 600), (6, 600), (7, 900)):
            tx.execute("UPDATE delivery SET kind = 'retry', due_at = :due WHERE seq = :seq",
                       {"due": due, "seq": seq})  # fmt: skip
        tx.execute("UPDATE delivery SET state = 'delivered' WHERE seq IN (1, 5)")
        return endpoint.id

    return await box.live.database.write(queue)


def seqs(deliveries):
    return [delivery.seq for delivery in deliveries]


async def test_new_deliveries_are_sent_in_the_order_of_their_events(box, clock, endpoint_id):
    peek = box.live.database.peek

    assert seqs(peek(iterate_new, endpoint_id)) == [2, 3, 8, 9]
    assert seqs(peek(iterate_new, endpoint_id, since=clock.now() - 1)) == [2, 3, 8, 9]
    assert seqs(peek(iterate_new, endpoint_id, since=clock.now())) == []
    assert seqs(peek(iterate_new, "another endpoint")) == []


async def test_retries_are_sent_in_the_order_in_which_they_become_due(box, endpoint_id):
    peek = box.live.database.peek

    assert seqs(peek(iterate_retries, endpoint_id, 599)) == []
    assert seqs(peek(iterate_retries, endpoint_id, 700)) == [6, 4]
    assert peek(find_next_retry, endpoint_id) == 600
    assert peek(find_next_retry, "another endpoint") is None


async def test_a_retry_due_in_more_than_13_hours_is_treated_as_due_now(box, endpoint_id):
    before = 900 - LONGEST_WAIT_MS

    peek = box.live.database.peek
    assert seqs(peek(iterate_retries, endpoint_id, before)) == []
    assert seqs(peek(iterate_retries, endpoint_id, before - 1)) == [7]


async def test_a_replayed_delivery_is_due_now_and_before_the_retries(box, endpoint_id):
    await box.live.database.write(
        lambda tx: tx.execute("UPDATE delivery SET kind = 'replay' WHERE seq = 7")
    )

    peek = box.live.database.peek
    assert seqs(peek(iterate_retries, endpoint_id, 700)) == [7, 6, 4]
    assert peek(find_next_retry, endpoint_id) == 0


async def test_a_delivery_is_pending_until_it_is_finished_or_cancelled(box, endpoint_id):
    assert await box.live.database.write(cancel_pending, endpoint_id) == 7
    assert await box.live.database.write(cancel_pending, endpoint_id) == 0
