"""A partner in the sandbox: creates a receiver, registers it, and reads its deliveries."""

import asyncio
from urllib.parse import urlsplit

from tests.conftest import Running
from tests.waiting import within


async def borrowed(running: Running):
    """Return the answer to `POST /test/echo`."""
    status, lent, _ = await running.call("POST", "/test/echo")
    assert status == 201
    return lent


async def registered(running: Running, lent=None):
    """Return a receiver and its registered endpoint with the secret."""
    lent = lent or await borrowed(running)
    status, endpoint, _ = await running.call("POST", "/test/v1/webhooks", json={"url": lent["url"]})
    assert status == 201
    return lent, endpoint


def path_of(lent):
    """Return only the path of the receiver's URL, because the tests use another host."""
    return urlsplit(lent["url"]).path


async def told(running: Running, lent, after=0):
    async with running.client.get(f"{path_of(lent)}?after={after}") as response:
        assert response.status == 200
        return await response.json()


async def arrived(running: Running, lent, count=1):
    """Wait for `count` deliveries and return them, newest first."""
    async with within(f"{count} deliveries at the echo receiver"):
        while True:
            items = (await told(running, lent))["items"]
            if len(items) >= count:
                return items
            await asyncio.sleep(0.01)


async def switched(running: Running, lent, **behaviour):
    async with running.client.put(path_of(lent), json=behaviour) as response:
        return response.status, await response.json()


async def asked_for_a_test_event(running: Running, endpoint):
    status, queued, _ = await running.call(
        "POST", "/test/v1/webhooks/test", json={"endpointId": endpoint["id"]}
    )
    assert (status, queued["queued"]) == (202, 1)
    return queued["deliveryIds"][0]


async def attempt_of(running: Running, delivery_id):
    """Wait for the first attempt and return its (outcome, status)."""
    query = """SELECT a.outcome, a.http_status FROM attempt a
               JOIN delivery d ON d.seq = a.delivery_seq WHERE d.id = :id ORDER BY a.n"""
    async with within(f"an attempt of the delivery {delivery_id}"):
        while True:
            found = running.test.database.peek(
                lambda reader: list(reader.rows(query, {"id": delivery_id}))
            )
            if found:
                return tuple(found[0])
            await asyncio.sleep(0.01)
