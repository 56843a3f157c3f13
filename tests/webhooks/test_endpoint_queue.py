"""What an endpoint's queue remembers between two queries of the database."""

import pytest

from appliance.webhooks import endpoint_queue
from appliance.webhooks.deliveries import DueDelivery
from appliance.webhooks.endpoint_queue import EndpointQueue


@pytest.fixture
def queue(monkeypatch):
    """A queue whose retry waits for another delivery about its reservation."""
    retry = DueDelivery(1, "a", 1, "reservation.created", "reservation", 0, 0)
    for name, found in {"iterate_untried": [], "iterate_retries": [retry], "newest_delivery": 0,
                        "find_next_retry": None}.items():  # fmt: skip
        monkeypatch.setattr(endpoint_queue, name, lambda *_, found=found: found)
    queue = EndpointQueue("endpoint")
    queue.endpoint = object()
    return queue


@pytest.mark.parametrize("looks", [1, 2, 3])
def test_a_retry_that_waits_for_its_reservation_is_due_once_that_is_recorded(queue, looks):
    queue.begin(DueDelivery(2, "b", 0, "reservation.confirmed", "reservation", 0, 0))
    queue.expect_retry(100)

    for uptime in range(100, 100 + looks):
        queue.expect()  # a booking was committed meanwhile
        assert list(queue.choose(None, uptime, queue.room)) == []
    queue.end(None)
    queue.finish(2)

    assert queue.wants(200)
    assert queue.next_retry == 0


def test_what_is_under_way_is_not_started_again(queue, monkeypatch):
    rows = [DueDelivery(seq, str(seq), 0, "webhook.test", None, 0, 0) for seq in (1, 2, 3, 4)]
    monkeypatch.setattr(endpoint_queue, "iterate_untried", lambda *_: iter(rows))
    queue.begin(rows[0])
    queue.begin(rows[2])

    assert [each.seq for each in queue.choose(None, 0, 4)] == [2, 4]


def test_what_waits_for_one_that_started_in_the_same_look_is_looked_for_once_that_is_recorded(
    queue, monkeypatch
):
    first, second = (
        DueDelivery(seq, str(seq), 0, "reservation.created", "same", 0, 0) for seq in (1, 2)
    )
    monkeypatch.setattr(endpoint_queue, "iterate_untried", lambda *_: iter([first, second]))
    for delivery in queue.choose(None, 0, 4):
        queue.begin(delivery)
    queue.next_retry = None
    assert queue.in_flight == 1
    assert not queue.wants(0)
    queue.end(None)
    queue.finish(1)

    assert queue.wants(0)
