"""A partner in the sandbox: borrows a receiver, registers it, and looks at what arrived."""

import asyncio
from urllib.parse import urlsplit

from tests.conftest import Running


async def borrowed(running: Running):
    """What `POST /test/echo` lends."""
    status, lent, _ = await running.call("POST", "/test/echo")
    assert status == 201
    return lent


async def registered(running: Running, lent=None):
    """A lent receiver and the endpoint that sends to it, secret included."""
    lent = lent or await borrowed(running)
    status, endpoint, _ = await running.call("POST", "/test/v1/webhooks", json={"url": lent["url"]})
    assert status == 201
    return lent, endpoint


def path_of(lent):
    """The receiver's address at whichever host the tests reach the box."""
    return urlsplit(lent["url"]).path


async def told(running: Running, lent, after=0):
    async with running.client.get(f"{path_of(lent)}?after={after}") as response:
        assert response.status == 200
        return await response.json()


async def arrived(running: Running, lent, count=1):
    """The items, newest first, once there are so many."""
    async with asyncio.timeout(60):
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
    """(outcome, status) of the first attempt, once it is recorded."""
    query = """SELECT a.outcome, a.http_status FROM attempt a
               JOIN delivery d ON d.seq = a.delivery_seq WHERE d.id = :id ORDER BY a.n"""
    async with asyncio.timeout(60):
        while True:
            found = running.test.database.peek(
                lambda reader: list(reader.rows(query, {"id": delivery_id}))
            )
            if found:
                return tuple(found[0])
            await asyncio.sleep(0.01)
