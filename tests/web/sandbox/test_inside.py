"""The way inside is no hole: live does not know it, and no other spelling or port opens."""

import asyncio
import socket

import pytest

from appliance.errors import InvalidWebhookUrl
from tests.web.sandbox.sandbox_world import (
    arrived,
    asked_for_a_test_event,
    borrowed,
    registered,
)
from web.sandbox.sandbox import Sandbox


@pytest.fixture
def sandbox(box):
    return Sandbox(box.test, box.clock, box.tokens)


async def test_live_refuses_the_echo_receiver_as_any_other_address_of_the_box(running):
    lent = await borrowed(running)
    url = lent["url"].replace("https://box.example", "https://127.0.0.1:8443")

    status, refusal, _ = await running.call("POST", "/v1/webhooks", json={"url": url})

    assert (status, refusal["code"]) == (400, "INVALID_WEBHOOK_URL")


async def test_only_the_very_url_that_was_lent_is_inside(box, sandbox):
    token = sandbox.new_token()
    url, inside = sandbox.url(token), sandbox.outside_of(box.test).inside

    assert inside.names(url)
    for other in (
        url + "?x=1",
        url + "/",
        url + "/../../v1/venue",
        url.replace("/test/echo/", "/echo/"),
        url.replace("/test/echo/", "/test/echo/../echo/"),
        url.replace("https:", "http:"),
        url.replace("box.example", "box.example:8443"),
        url.replace("box.example", "BOX.example"),
        url.replace("box.example", "127.0.0.1"),
        url[:-1] + ("A" if url[-1] != "A" else "B"),
        url.replace(token, box.live.keyring.echo_token("018f0000-0000-7000-8000-000000000000")),
        token,
        "",
    ):
        assert not inside.names(other), other


async def test_what_is_beside_it_still_meets_the_guard(box, sandbox):
    outside = sandbox.outside_of(box.test)

    for url in ("http://127.0.0.1:9/test/echo/x", "http://[::1]:8080/", "http://169.254.169.254/"):
        with pytest.raises(InvalidWebhookUrl):
            await outside.check(url, allow_http=True)


async def test_a_delivery_inside_opens_no_connection(running, monkeypatch):
    dialled = []
    real = socket.socket.connect

    def connect(self, address):
        dialled.append(address)
        return real(self, address)

    lent, endpoint = await registered(running)
    monkeypatch.setattr(socket.socket, "connect", connect)
    loop = asyncio.get_running_loop()

    async def sock_connect(_sock, address):
        dialled.append(address)
        raise OSError("no connection is allowed here")

    monkeypatch.setattr(loop, "sock_connect", sock_connect)

    await asked_for_a_test_event(running, endpoint)

    assert (await arrived(running, lent))[0]["signature"]["verdict"] == "valid"
    assert [address for address in dialled if address[0] != "127.0.0.1"] == []
