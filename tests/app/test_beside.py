"""Commands beside a running box: their changes take effect at once, without polling."""

import asyncio
import json

import pytest
import stripe

from appliance.clock import SystemClock, newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.tokens import Keyring, Tokens
from appliance.database.integrity import session
from appliance.outbox import queue_event
from appliance.webhooks.endpoints import register_endpoint
from tests.app.processes import Serving
from tests.journeys.box_process import found_box
from tests.waiting import within
from web.main import main

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture
def data(tmp_path):
    """The data directory of a box that may send webhooks to this machine."""
    found = found_box(tmp_path).data
    (found / "settings.toml").write_text(
        '[webhooks]\nallow_networks = ["127.0.0.1"]\nallow_http = true\n'
    )
    return found


def transaction(data):
    return session(data / "live.db", SystemClock(), Tokens(), newest_zone_database())


def a_dead_delivery(data, receiver):
    """Return (endpoint id, secret, delivery id)."""
    keyring = Keyring(DataDirectory(data).master_key(), "live")
    with transaction(data) as tx:
        endpoint, secret = register_endpoint(tx, keyring, receiver.url, ("webhook.test",))
        [delivery_id] = queue_event(tx, "webhook.test", None, [endpoint.id])
        tx.execute("UPDATE delivery SET state = 'dead', attempts = 6")
    return endpoint.id, secret, delivery_id


def serving(data):
    return Serving("--data", str(data), "--host", "127.0.0.1", "--port", "0")


async def command(data, *words):
    status = await asyncio.to_thread(main, [*words, "--data", str(data)], {})
    assert status == 0


async def delivered(data):
    """Wait until no delivery is pending."""
    async with within("the end of all pending deliveries"):
        while True:
            with transaction(data) as tx:
                if not tx.value("SELECT count(*) FROM delivery WHERE state = 'pending'"):
                    return
            await asyncio.sleep(0.05)


async def test_a_replay_beside_the_running_box_starts_at_once(data, receiver):
    endpoint_id, _, delivery_id = a_dead_delivery(data, receiver)
    with serving(data):
        await command(data, "replay", "--environment", "live", "--delivery", delivery_id)
        [one] = await receiver.got(1)
        await delivered(data)

        await command(data, "replay", "--environment", "live", "--endpoint", endpoint_id, "--all")
        both = await receiver.got(2)

    assert [request.id for request in both] == [delivery_id] * 2
    assert one.headers["x-service-event"] == "webhook.test"


async def test_a_secret_rolled_by_a_command_signs_the_next_delivery(data, receiver, capsys):
    endpoint_id, old, delivery_id = a_dead_delivery(data, receiver)
    with serving(data):
        await command(data, "endpoint", "roll", endpoint_id, "--json")
        new = json.loads(capsys.readouterr().out)["secret"]
        await command(data, "replay", "--environment", "live", "--delivery", delivery_id)
        [request] = await receiver.got(1)

    header, body = request.headers["x-service-signature"], request.raw.decode()
    for secret in (new, old):
        assert stripe.WebhookSignature.verify_header(body, header, secret)
