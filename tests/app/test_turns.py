"""A client that requests many pages at once does not delay scans."""

import asyncio

import pytest
from aiohttp import ClientSession

from appliance.door.terminals import issue_terminal

PAGES = 90


@pytest.fixture
async def token(running):
    return (await running.live.database.write(issue_terminal, "Porte 1"))[1]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/openapi.json", 200), ("GET", "/nothing", 404), ("GET", "/v1/venue", 401),
     ("GET", "/terminal/v1/evening", 401), ("POST", "/nothing", 404)],
)  # fmt: skip
async def test_a_terminal_is_answered_before_the_waiting_pages_of_the_same_client(
    running, token, method, path, status
):
    done, begun = [], asyncio.Event()

    async def ask():
        async with running.client.request(method, path) as response:
            await response.read()
            done.append(response.status)
            begun.set()

    # The terminal is already connected, and its request needs no thread.
    url = running.client.make_url("/terminal/v1/events")
    headers = {"Authorization": f"Bearer {token}"}
    async with ClientSession(headers=headers) as terminal:
        async with terminal.head(url) as response:
            assert response.status == 200
        waiting = [asyncio.create_task(ask()) for _ in range(PAGES)]
        await begun.wait()

        async with terminal.head(url) as response:
            assert response.status == 200

    assert len(done) < PAGES
    await asyncio.gather(*waiting)
    assert done == [status] * PAGES


async def test_the_openapi_document_is_built_once_a_day_and_has_an_etag(running):
    async with running.client.get("/openapi.json") as first:
        etag, text = first.headers["ETag"], await first.text()
    other = {"Host": "192.168.1.20:8080"}
    async with running.client.get("/openapi.json", headers={"If-None-Match": etag}) as same:
        assert (same.status, await same.read()) == (304, b"")
    async with running.client.get(
        "/openapi.json", headers={"If-None-Match": etag, **other}
    ) as moved:
        assert moved.status == 200
        assert (await moved.json())["servers"][0]["url"] == "http://192.168.1.20:8080"

    running.clock.advance(86_400)

    async with running.client.get("/openapi.json", headers={"If-None-Match": etag}) as tomorrow:
        assert tomorrow.status == 200
        assert await tomorrow.text() != text
