"""What an endpoint's queue remembers between two looks at the database."""

import pytest

from appliance.model.delivery import DueDelivery
from appliance.webhooks import endpoint_queue
from appliance.webhooks.endpoint_queue import EndpointQueue


@pytest.fixture
def queue(monkeypatch):
    """A queue whose retry waits for another delivery about its reservation."""
    for name, found in {"page_untried": [], "page_retries": [], "newest_delivery": 0,
                        "find_next_retry": None}.items():  # fmt: skip
        monkeypatch.setattr(endpoint_queue, name, lambda *_, found=found: found)
    queue = EndpointQueue("endpoint")
    queue.endpoint = object()
    return queue


@pytest.mark.proves("I6")
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
