"""The bridge's calls over the network: deadlines, certificates, meanings of responses."""

import argparse
import asyncio
import ssl
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from appliance.clock import SystemClock
from appliance.core.errors import OperatorError
from appliance.tls.authority import Names
from appliance.tls.certificates import Certificates
from terminal_bridge.agent import client as module
from terminal_bridge.agent.client import (
    BoxClient,
    Identity,
    NotPaired,
    OutOfReach,
    Refused,
    load_identity,
    parse_box,
)
from terminal_bridge.agent.run import _identify


def a_certificate(folder):
    """Return the authority of a box as PEM text, and the TLS context of its certificate."""
    names = Names(("localhost",), ("127.0.0.1",))
    made = Certificates(folder, SystemClock(), lambda: "Riad", lambda: names, lambda: False)
    made.prepare()
    return ssl.DER_cert_to_PEM_cert(made.give_authority()), made.context


@asynccontextmanager
async def a_box(answer, context=None):
    """Run a server that responds to every call with `answer(request)`. Yield its address."""
    app = web.Application()
    app.router.add_route("*", "/terminal/v1/{call}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def well(_request):
    return web.json_response({"well": True})


async def test_https_is_verified_only_by_the_paired_authority(tmp_path):
    ca, context = a_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    other_ca, _ = a_certificate(tmp_path / "other")

    async with a_box(well, context) as address:
        async with BoxClient(Identity(address, ca=ca)) as client:
            assert await client.me() == {"well": True}
        for foreign in (other_ca, ""):
            async with BoxClient(Identity(address, ca=foreign)) as client:
                with pytest.raises(OutOfReach, match="certificate"):
                    await client.me()


@pytest.mark.parametrize(
    ("status", "text", "outcome"),
    [(401, '{"error_en": "revoked"}', NotPaired), (400, '{"error": "non"}', Refused),
     (429, '{"error": "non"}', Refused), (500, "{}", OutOfReach), (503, "{}", OutOfReach),
     (502, "<html>", OutOfReach), (200, "<html>", OutOfReach), (200, "[]", OutOfReach),
     (302, "{}", OutOfReach)],
)  # fmt: skip
async def test_each_response_status_maps_to_its_outcome(status, text, outcome):
    async def answer(_request):
        return web.Response(status=status, text=text)

    async with a_box(answer) as address, BoxClient(Identity(address)) as client:
        with pytest.raises(outcome):
            await client.scan({})


async def test_a_box_that_does_not_respond_by_the_deadline_is_unreachable(monkeypatch):
    monkeypatch.setattr(module, "SCAN_SECONDS", 0.2)

    async def never(_request):
        await asyncio.sleep(60)

    async with a_box(never) as address, BoxClient(Identity(address)) as client:
        with pytest.raises(OutOfReach, match="in time"):
            await client.scan({})
    async with BoxClient(Identity("http://127.0.0.1:9")) as client:
        with pytest.raises(OutOfReach, match="cannot be reached"):
            await client.scan({})


async def test_the_agent_reloads_on_a_feed_event_but_not_on_a_heartbeat():
    heard = []

    async def feed(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for text in (b": heartbeat\n\n", b"event: check-in\ndata: {}\n\n"):
            await response.write(text)
            await asyncio.sleep(0.2)
        return response

    async with a_box(feed) as address, BoxClient(Identity(address)) as client:
        await client.listen(lambda: heard.append(1))

    assert len(heard) == 1


def test_the_pairing_file_is_readable_only_by_its_owner(tmp_path):
    identity = Identity("https://box.example/test", token="term_x", keys=((1, "AA"),))

    identity.save(tmp_path)

    assert load_identity(tmp_path) == identity
    assert identity.environment == "test"
    assert (tmp_path / "bridge.json").stat().st_mode & 0o077 == 0
    (tmp_path / "bridge.json").write_text("{}")
    with pytest.raises(OperatorError, match="Pair this bridge again"):
        load_identity(tmp_path)
    (tmp_path / "bridge.json").unlink()
    (tmp_path / "bridge.json").mkdir()  # even root cannot read this file
    with pytest.raises(OperatorError, match="cannot be read: Is a directory"):
        load_identity(tmp_path)


def told(**arguments):
    """Return the command's arguments as argparse parses them."""
    names = ("box", "pair", "name", "ca")
    return argparse.Namespace(**dict.fromkeys(names) | arguments)


def test_the_address_of_the_box_must_not_contain_a_path():
    assert parse_box("https://192.168.1.20:8443/") == "https://192.168.1.20:8443"
    assert parse_box("https://192.168.1.20:8443/test") == "https://192.168.1.20:8443/test"
    for page in ("/door", "/terminal/v1/pair", "/door#pair=secret"):
        with pytest.raises(OperatorError, match="address alone"):
            parse_box("https://192.168.1.20:8443" + page)


async def test_a_failed_pairing_says_what_to_do(tmp_path):
    async def refuse(_request):
        sentences = {"error": "Utilisez https.", "error_en": "Use https."}
        return web.json_response(sentences, status=403)

    _, context = a_certificate(tmp_path)
    async with a_box(refuse) as plain, a_box(refuse, context) as secure:
        for address, sentence in (
            (plain, f"{plain} refused the pairing: Use https."),
            (secure, "not trusted .*--ca "),
            (plain.replace("http:", "https:"), "does not speak https.*terminal pair"),
            (secure.replace("https:", "http:"), "closed the connection.*terminal pair"),
            ("https://127.0.0.1:9", "Connection refused.*terminal pair"),
        ):
            with pytest.raises(OperatorError, match=sentence):
                await _identify(told(box=address, pair="12345678"), tmp_path)


async def test_a_failed_pairing_keeps_the_previous_one_with_its_address(tmp_path):
    known = Identity("https://box.example", token="term_x")
    known.save(tmp_path)

    assert await _identify(told(box="https://127.0.0.1:9", pair="12345678"), tmp_path) == known
    assert load_identity(tmp_path) == known
