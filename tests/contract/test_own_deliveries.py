"""A partner reads and replays the deliveries to its own endpoints (interface, 2.10 and 4)."""

import pytest

from tests.builders import a_body
from tests.conftest import Running, with_settings
from tests.contract.calls import UNKNOWN, registered
from tests.contract.venue import Venue
from tests.waiting import within

PAGE = 50
URL = "http://127.0.0.1:9009/hook"  # no server listens there
HOUR_MS = 3_600_000


@pytest.fixture
def settings():
    return with_settings(
        api={"rate_limit_per_minute": 100_000}, webhooks={"allow_networks": ("127.0.0.0/8",)}
    )


async def listed(running: Running, endpoint: dict, key: str | None = None, **query: str):
    path = f"/test/v1/webhooks/{endpoint['id']}/deliveries"
    return await running.call("GET", path, key=key, params=query)


async def replay(running: Running, endpoint: dict, key: str | None = None, **body: object):
    path = f"/test/v1/webhooks/{endpoint['id']}/replay"
    status, answer, _ = await running.call("POST", path, key=key, json=body)
    return status, answer


async def queued(running: Running, endpoint: dict, count: int = 1) -> list[str]:
    ids = []
    for _ in range(count):
        _, body, _ = await running.call(
            "POST", "/test/v1/webhooks/test", json={"endpointId": endpoint["id"]}
        )
        ids += body["deliveryIds"]
    return ids


async def bury(running: Running, *delivery_ids: str) -> None:
    """Mark the deliveries as dead, with events one hour ago, two hours ago, and so on."""
    for hours, id_ in enumerate(delivery_ids, 1):
        await Venue(running, "test").bury(id_, running.clock.now() - hours * HOUR_MS)


async def states(running: Running, endpoint: dict) -> dict[str, str]:
    _, body, _ = await listed(running, endpoint)
    return {item["id"]: item["state"] for item in body["items"]}


async def settled(running: Running, endpoint: dict) -> None:
    """Wait until no delivery is pending. Each check is a call, during which the box works."""
    async with within("the end of all pending deliveries"):
        while "pending" in (await states(running, endpoint)).values():
            pass


async def test_a_delivery_is_listed_with_its_reservation_and_result(running, receiver):
    endpoint = await registered(running, "/test", url=receiver.url)
    _, booked, _ = await running.call("POST", "/test/v1/reservations", json=a_body())
    [request] = await receiver.got(1)
    await settled(running, endpoint)

    status, body, _ = await listed(running, endpoint)

    assert (status, body["hasMore"]) == (200, False)
    assert body["items"] == [{
        "id": request.id,
        "type": "reservation.created",
        "occurredAt": request.body["occurredAt"],
        "serviceReservationId": booked["serviceReservationId"],
        "state": "delivered",
        "attempts": 1,
        "lastOutcome": "delivered",
        "nextAttemptAt": None,
    }]  # fmt: skip


async def test_the_pages_of_deliveries_follow_each_other_newest_first(running):
    endpoint = await registered(running, "/test", url=URL)
    ids = await queued(running, endpoint, PAGE + 1)
    await bury(running, ids[3])

    _, first, _ = await listed(running, endpoint)
    _, second, _ = await listed(running, endpoint, before=first["items"][-1]["id"])
    _, dead, _ = await listed(running, endpoint, state="dead")

    assert [item["id"] for item in first["items"] + second["items"]] == ids[::-1]
    assert (first["hasMore"], second["hasMore"]) == (True, False)
    assert [item["id"] for item in dead["items"]] == [ids[3]]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [({"state": "lost"}, 400, "VALIDATION_ERROR"), ({"page": "2"}, 400, "VALIDATION_ERROR"),
     ({"before": "nonsense"}, 404, "NOT_FOUND"), ({"before": UNKNOWN}, 404, "NOT_FOUND")],
)  # fmt: skip
async def test_an_invalid_parameter_is_refused(running, query, status, code):
    endpoint = await registered(running, "/test", url=URL)
    answered, body, _ = await listed(running, endpoint, **query)
    assert (answered, body["code"]) == (status, code)


async def test_another_keys_endpoint_is_not_found_and_a_successor_inherits_it(running, sandbox):
    endpoint = await registered(running, "/test", url=URL)
    [delivery_id] = await queued(running, endpoint)
    await bury(running, delivery_id)
    successor, other = await sandbox.rotate_key(), await sandbox.issue_key()

    assert (await listed(running, endpoint, other))[0] == 404
    assert (await replay(running, endpoint, other))[0] == 404
    assert (await replay(running, endpoint, other, deliveryId=delivery_id))[0] == 404
    assert (await states(running, endpoint)) == {delivery_id: "dead"}
    assert (await listed(running, endpoint, successor))[0] == 200
    assert await replay(running, endpoint, successor) == (202, {"queued": 1})


async def test_a_replay_queues_the_dead_deliveries_of_the_chosen_period(running):
    endpoint = await registered(running, "/test", url=URL)
    ids = await queued(running, endpoint, 3)
    await bury(running, *ids)

    since = "2026-11-21T17:30:00Z"  # an hour and a half ago
    assert await replay(running, endpoint, since=since) == (202, {"queued": 1})
    assert (await states(running, endpoint))[ids[0]] == "pending"
    assert await replay(running, endpoint) == (202, {"queued": 2})
    assert await replay(running, endpoint) == (202, {"queued": 0})


async def test_a_single_delivery_of_an_endpoint_is_sent_again_with_its_id(running, receiver):
    endpoint = await registered(running, "/test", url=receiver.url)
    other = await registered(running, "/test", url=f"{receiver.url}other")
    [delivery_id] = await queued(running, endpoint)
    await settled(running, endpoint)

    assert await replay(running, endpoint, deliveryId=delivery_id) == (202, {"queued": 1})
    requests = await receiver.got(2)

    assert (await replay(running, other, deliveryId=delivery_id))[0] == 404
    assert [request.id for request in requests] == [delivery_id] * 2


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [({"since": "yesterday"}, 400, "VALIDATION_ERROR"), ({"since": 7}, 400, "VALIDATION_ERROR"),
     ({"deliveryId": 7}, 400, "VALIDATION_ERROR"), ({"deliveryId": "x"}, 404, "NOT_FOUND"),
     ({"deliveryId": UNKNOWN}, 404, "NOT_FOUND"),
     ({"deliveryID": UNKNOWN}, 400, "VALIDATION_ERROR"),
     ({"since": "2026-11-21T17:30:00Z", "x": None}, 400, "VALIDATION_ERROR")],
)  # fmt: skip
async def test_an_invalid_member_is_refused_and_replays_nothing(running, body, status, code):
    endpoint = await registered(running, "/test", url=URL)
    [delivery_id] = await queued(running, endpoint)
    await bury(running, delivery_id)

    answered, answer = await replay(running, endpoint, **body)

    assert (answered, answer["code"]) == (status, code)
    assert await states(running, endpoint) == {delivery_id: "dead"}


async def test_a_replay_to_a_deactivated_endpoint_is_refused(running):
    endpoint = await registered(running, "/test", url=URL)
    [delivery_id] = await queued(running, endpoint)
    await bury(running, delivery_id)
    await running.call("DELETE", f"/test/v1/webhooks/{endpoint['id']}")

    for body in ({}, {"since": "2026-11-21T00:00:00Z"}, {"deliveryId": delivery_id}):
        status, answer = await replay(running, endpoint, **body)
        assert (status, answer["code"]) == (409, "ENDPOINT_INACTIVE")
    assert await states(running, endpoint) == {delivery_id: "dead"}
