"""Echo receivers: what they show, how they respond, and that they open no connection."""

import hmac
import json

import pytest

from tests.app.sandbox.sandbox_world import (
    arrived,
    asked_for_a_test_event,
    attempt_of,
    borrowed,
    path_of,
    registered,
    switched,
)
from tests.conftest import running_box, with_settings
from web.sandbox import MODES, Sandbox

FORGED = {"X-Service-Signature": f"t=1,v1={'0' * 64}", "X-Service-Delivery": "made-up"}


async def test_a_delivery_is_shown_with_its_headers_raw_body_and_valid_signature(running):
    lent, endpoint = await registered(running)

    delivery = await asked_for_a_test_event(running, endpoint)

    [echo] = await arrived(running, lent)
    headers = dict(echo["headers"])
    assert (echo["event"], echo["delivery"], echo["attempt"]) == ("webhook.test", delivery, 1)
    assert headers["X-Service-Delivery"] == json.loads(echo["body"])["id"] == delivery
    assert headers["Host"] == "box.example"
    assert echo["signature"]["verdict"] == "valid"
    t, body = echo["signature"]["t"], echo["body"].encode()
    digest = hmac.new(endpoint["secret"].encode(), b"%d." % t + body, "sha256").hexdigest()
    assert echo["signature"]["expected"] == echo["signature"]["given"] == [digest]
    assert await attempt_of(running, delivery) == ("delivered", 204)


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        ({"mode": "slow"}, ("delivered", 204)),
        ({"mode": "fail"}, ("http_500", 500)),
    ],
    ids=lambda value: value.get("mode") if isinstance(value, dict) else "",
)
async def test_each_answer_of_the_echo_receiver_has_its_usual_effect_on_the_delivery(
    running, behaviour, outcome, monkeypatch
):
    monkeypatch.setattr("web.sandbox.SLOW_SECONDS", 0.2)
    lent, endpoint = await registered(running)
    await switched(running, lent, **behaviour)
    delivery = await asked_for_a_test_event(running, endpoint)
    assert await attempt_of(running, delivery) == outcome
    [echo] = await arrived(running, lent)
    assert echo["answer"]["mode"] == behaviour["mode"]


async def test_an_unknown_mode_of_the_echo_receiver_is_refused(running):
    lent = await borrowed(running)

    for wrong in ({"mode": "explode"}, {}, {"mode": ["slow"]}):
        status, refusal = await switched(running, lent, **wrong)
        assert (status, refusal["code"]) == (400, "VALIDATION_ERROR")
        assert refusal["field"] == "mode"
    for mode in MODES:
        assert (await switched(running, lent, mode=mode))[0] == 200


async def test_a_forged_request_is_shown_with_an_invalid_signature_and_an_unknown_origin(
    running, clock
):
    lent, _ = await registered(running)
    stamp = clock.now() // 1000
    signatures = {
        "too old": f"t={stamp - 301},v1={'0' * 64}",
        "wrong": f"t={stamp},v1={'0' * 64}",
        "missing": "v1=" + "é" * 5,
    }

    for signature in signatures.values():
        headers = {**FORGED, "X-Service-Signature": signature}
        async with running.client.post(path_of(lent), data=b"{}", headers=headers) as response:
            assert response.status == 204

    echoes = await arrived(running, lent, 3)
    assert [echo["signature"]["verdict"] for echo in reversed(echoes)] == list(signatures)
    assert {echo["attempt"] for echo in echoes} == {None}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_each_address_has_its_own_rate_limit_at_the_echo_receiver(tmp_path, clock, method):
    settings = with_settings(server={"trusted_proxies": ("127.0.0.1",)})
    async with running_box(tmp_path, clock, settings) as running:
        path = path_of(await borrowed(running))

        async def status(address):
            headers = {"X-Forwarded-For": address}
            async with running.client.request(
                method, path, json={"mode": "normal"}, headers=headers
            ) as response:
                return response.status

        answers = {await status("203.0.113.5") for _ in range(240)}

        assert max(answers) < 300
        assert await status("203.0.113.5") == 429
        assert await status("203.0.113.6") in answers


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_an_echo_receiver_with_an_invalid_token_is_not_found(running, method):
    lent = await borrowed(running)
    path = path_of(lent)
    other = path[:-1] + ("A" if path[-1] != "A" else "B")
    for strange in (other, "/test/echo/x", path + "=", path.replace("/test", "")):
        async with running.client.request(method, strange, json={"mode": "normal"}) as response:
            assert (response.status, (await response.json())["code"]) == (404, "NOT_FOUND")


async def test_an_echo_receiver_is_given_only_to_test_keys_with_the_scope(running):
    status, refusal, _ = await running.call("POST", "/test/echo", key=running.live_key)
    assert (status, refusal["code"]) == (401, "UNAUTHORIZED")
    async with running.client.post("/test/echo") as response:
        assert response.status == 401
    async with running.client.post("/echo") as response:
        assert response.status == 404


@pytest.fixture
def sandbox(box):
    return Sandbox(box.test, box.clock, box.tokens)


async def test_only_the_exact_url_of_an_echo_receiver_is_delivered_internally(box, sandbox):
    token = sandbox.new_token()
    url, inside = sandbox.url(token), sandbox.dependencies_of(box.test).inside

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
