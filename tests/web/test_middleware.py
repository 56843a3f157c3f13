"""Accidents: answered in the documented form, and noted without what a guest wrote."""

import logging

import pytest
from aiohttp import web

from web.hosts import HOSTS, Hosts
from web.middleware import REQUESTS, Counter, answer_everything


@pytest.mark.proves("S22", "S30", "V16")
async def test_the_text_of_an_accident_is_neither_answered_nor_logged(aiohttp_client, caplog):
    async def fail(_request: web.Request) -> web.Response:
        raise ValueError("salma", "@", "example.com")

    app = web.Application(middlewares=[answer_everything])
    app[HOSTS] = Hosts((), (), lambda: "venue")
    app[REQUESTS] = Counter()
    app.router.add_get("/access/{token}", fail)
    client = await aiohttp_client(app)

    with caplog.at_level(logging.DEBUG):
        async with client.get("/access/secret") as response:
            body = await response.text()

    assert response.status == 500
    [record] = [r for r in caplog.records if r.name == "appliance.accidents"]
    noted = logging.Formatter().format(record)
    assert "GET /access/{token} failed: ValueError" in noted
    assert "test_middleware.py" in noted
    assert "'salma', '@'" not in noted + body
    assert "secret" not in noted


@pytest.mark.proves("S29", "V13")
@pytest.mark.parametrize("path", ["/", "/nowhere"])
async def test_no_answer_tells_which_library_made_it(aiohttp_client, path):
    async def answer(_request: web.Request) -> web.Response:
        return web.Response()

    app = web.Application(middlewares=[answer_everything])
    app[HOSTS] = Hosts((), (), lambda: "venue")
    app[REQUESTS] = Counter()
    app.router.add_get("/", answer)
    client = await aiohttp_client(app)

    async with client.get(path) as response:
        assert response.headers["Server"] == "venuebox"
