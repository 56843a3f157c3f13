"""The box reconnects to its relay by itself, and reports when it cannot."""

import asyncio
import socket
from dataclasses import replace
from functools import partial

import pytest

from appliance.checks.check import list_observations
from appliance.core.ssh import key_file
from appliance.relay import relay_file
from tests.app.relay.relay_world import CALLER, HERE, Answering, header_of
from tests.conftest import opened_box
from tests.waiting import until
from web.relay import client
from web.relay.client import RelayClient


class Joined:
    """A box, its relay, and the relay client that connects them."""

    def __init__(self, box, root, relay):
        self.box, self.root, self.relay = box, root, relay
        self.client = RelayClient(box, root)
        self.offer = relay.admit(root)
        self.seen = []

    def start(self, *, serves_tls=True):
        self.client.start(partial(Answering, self.seen) if serves_tls else None)

    def seen_faults(self):
        return {(each.name, each.detail) for each in self.box.live.database.peek(list_observations)}

    async def until_seen(self, *wanted):
        """Wait until exactly these faults are observed."""
        await self.relay.until(lambda: self.seen_faults() == set(wanted))

    async def until_told(self, *names):
        await self.relay.until(lambda: {name for name, _ in self.seen_faults()} == set(names))

    async def until_reached(self):
        await until(self.is_reached)

    async def is_reached(self):
        try:
            return await self.relay.ask(header_of(CALLER) + b"x") == b"box|x"
        except OSError:
            return False

    def change(self, relay):
        """Change the relay file as a command in another process does."""
        if relay is None:
            relay_file(self.root).unlink()
        else:
            relay.save(self.root)
        self.box.look_for_changes()


@pytest.fixture
async def joined(root, clock, settings, relay, monkeypatch):
    monkeypatch.setattr(client, "_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(client, "_RETRY_SECONDS", (0.01, 0.02))
    monkeypatch.setattr(client, "_RETRY_REFUSED_SECONDS", (0.01, 0.02))
    async with opened_box(root, clock, settings) as box:
        found = Joined(box, root, relay)
        try:
            yield found
        finally:
            await found.client.close()


async def test_a_running_box_applies_joining_and_leaving_a_relay(joined):
    joined.start()
    await asyncio.sleep(0)
    assert joined.seen_faults() == set()
    joined.change(joined.offer)
    await joined.until_reached()

    joined.change(None)

    await joined.relay.until(lambda: not joined.relay.lines)
    await joined.until_seen()


async def test_a_lost_relay_connection_is_opened_again(joined):
    joined.start()
    joined.change(joined.offer)
    await joined.until_reached()

    joined.relay.cut()

    await joined.until_reached()
    await joined.until_seen()


@pytest.mark.parametrize("accepts", [False, True])
async def test_an_unresponsive_relay_is_reported_until_it_responds(
    joined, monkeypatch, accepts, unused_tcp_port_factory
):
    joined.start()
    with socket.create_server((HERE, 0)) as silent, monkeypatch.context() as hasty:
        port = silent.getsockname()[1] if accepts else unused_tcp_port_factory()
        hasty.setattr("web.relay.line._CONNECT_SECONDS", 0.05)
        joined.change(replace(joined.offer, port=port))
        await joined.until_seen(("relay_away", HERE))

    joined.change(joined.offer)

    await joined.until_reached()
    await joined.until_seen()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"fingerprint": "SHA256:other"}, "relay_other_key"),
        ({"user": "somebody"}, "relay_revoked"),
        ({"listen_port": 1}, "relay_taken"),  # the key of another box
    ],
)
async def test_each_refusal_is_reported_until_the_relay_accepts_the_box(joined, change, name):
    joined.start()
    joined.change(replace(joined.offer, **change))
    await joined.until_seen((name, HERE))

    joined.change(joined.offer)
    await joined.until_reached()
    await joined.until_seen()


async def test_an_unusable_file_or_key_is_reported_until_it_works(joined, monkeypatch):
    monkeypatch.setattr(client, "_READ_AGAIN_SECONDS", (0.01, 0.02))
    joined.offer.save(joined.root)
    joined.start()
    await joined.until_reached()
    for file in (relay_file(joined.root), key_file(joined.root)):
        whole = file.read_bytes()
        file.write_bytes(whole[:20])
        joined.relay.cut()
        await joined.until_told("relay_unusable")

        file.write_bytes(whole)  # the box gets no error

        await joined.until_reached()
        await joined.until_seen()


async def test_a_box_without_https_reports_that_it_cannot_use_the_relay(joined):
    joined.start(serves_tls=False)
    joined.change(joined.offer)

    await joined.until_told("relay_unusable")
    assert joined.relay.lines == []


async def test_a_stopping_box_accepts_no_new_callers(joined):
    joined.start()
    joined.change(joined.offer)
    await joined.until_reached()
    joined.seen.clear()

    joined.client.stop_accepting()

    assert await joined.relay.ask(header_of(CALLER) + b"x") == b""
    assert joined.seen == []
