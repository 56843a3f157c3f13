"""Addresses that no delivery may reach. A listener counts connections."""

import asyncio
import contextlib
import json
import re
from ipaddress import ip_address

import pytest

from appliance.outbox import queue_event
from appliance.webhooks.client import connect_directly
from appliance.webhooks.url_policy import EgressGuard, EgressPolicy, is_own_address
from tests.webhooks.corpus import NAMES, REFUSED

_PORT = re.compile(r"^(https?://)([^/?#@\\]*?)(?::\d+)?([/?#].*|)$", re.IGNORECASE | re.DOTALL)


class Listener:
    """Listen on 127.0.0.1 and, if available, on ::1, and count connections."""

    def __init__(self):
        self.accepted = 0
        self.port = 0

    def come(self, _reader, writer):
        self.accepted += 1
        writer.close()


@pytest.fixture
async def listener():
    found = Listener()
    async with contextlib.AsyncExitStack() as stack:
        for host in ("127.0.0.1", "::1"):
            try:
                server = await asyncio.start_server(found.come, host, found.port)
            except OSError:
                assert host == "::1", "loopback itself is there"
                continue
            found.port = server.sockets[0].getsockname()[1]
            await stack.enter_async_context(server)
        yield found


@pytest.fixture
def strict(change_outside, names, listener):
    """Allow no private address; connect every address to the listener."""
    names.known |= {**NAMES, "receiver.example": ["93.184.216.34"]}

    async def divert(_addresses, _port):
        return await connect_directly([ip_address("127.0.0.1")], listener.port)

    guard = EgressGuard(EgressPolicy((), is_own_address), names)
    change_outside(guard=guard, connect=divert)


@pytest.fixture
def direct(change_outside, names):
    """Allow no private address; connect directly."""
    names.known |= {**NAMES, "receiver.example": ["93.184.216.34"]}
    guard = EgressGuard(EgressPolicy((), is_own_address), names)
    change_outside(guard=guard, connect=connect_directly)


def spellings(port):
    """Return every URL of the corpus, also with the listener's port over https and http."""
    urls = REFUSED + [f"https://{name}/" for name in NAMES]
    for url in list(urls):
        match = _PORT.match(url)
        if match:
            urls += [f"{scheme}{match[2]}:{port}{match[3]}" for scheme in ("https://", "http://")]
    return list(dict.fromkeys(urls))


def plant(tx, urls):
    """Insert endpoints without the URL check, with a delivery to each."""
    ids = [tx.new_id() for _ in urls]
    for endpoint_id, url in zip(ids, urls, strict=True):
        tx.insert("endpoint", {"id": endpoint_id, "url": url, "active": 1, "created_at": tx.now,
                               "events": json.dumps(["webhook.test"]), "secret": b""})  # fmt: skip
    queue_event(tx, "webhook.test", None, ids)


async def planted(world, urls):
    def act(tx):
        plant(tx, urls)
        wrapped = world.environment.keyring.wrap(b"whsec_x", tx.tokens.random_bytes(12))
        tx.execute("UPDATE endpoint SET secret = :secret", {"secret": wrapped})

    await world.database.write(act)


def harmless(port):
    """Return the URLs at the listener's port that were refused only for their port.

    This test allows plain http, so the scheme is no reason for a refusal.
    """
    return [
        url for url in spellings(port)
        if re.fullmatch(rf"https?://receiver\.example(?::{port})?/", url, re.IGNORECASE)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("dialling", "every"),
    [("strict", 7), pytest.param("direct", 1, marks=pytest.mark.slow)],
)
async def test_forbidden_urls_inserted_into_the_database_are_never_dialled(
    world, listener, dialling, every, request
):
    request.getfixturevalue(dialling)
    urls = [url for url in spellings(listener.port) if url not in harmless(listener.port)]
    assert len(urls) > 230
    urls = urls[::every]
    await planted(world, urls)

    await world.start()
    await world.until(lambda: len(world.attempts()) == len(urls))

    assert {outcome for _, outcome in world.attempts()} == {"blocked"}
    assert {outcome for (outcome,) in world.rows("SELECT last_outcome FROM endpoint")} == {
        "blocked"
    }
    assert listener.accepted == 0


async def test_the_listener_would_count_a_forbidden_connection(
    world, change_outside, names, listener
):
    guard = EgressGuard(EgressPolicy(("127.0.0.0/8",), lambda _: False), names)
    change_outside(guard=guard)
    await planted(world, [f"http://127.0.0.1:{listener.port}/"])

    await world.start()
    await world.recorded(1)

    assert listener.accepted == 1


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["::1"], ["169.254.169.254"], ["93.184.216.34", "fd00::1"],
     ["93.184.216.34", "::ffff:10.0.0.1"]],
)  # fmt: skip
async def test_a_name_whose_address_changes_after_the_check_is_not_dialled(
    world, strict, names, listener, addresses
):
    url = f"http://rebinding.example:{listener.port}/"
    names.known["rebinding.example"] = ["93.184.216.34"]
    dispatcher = await world.start()
    await world.register(await dispatcher.check_url(url), ("webhook.test",))

    names.known["rebinding.example"] = addresses
    await world.database.write(
        lambda tx: queue_event(
            tx, "webhook.test", None, [id_ for (id_,) in tx.rows("SELECT id FROM endpoint")]
        )
    )
    await world.recorded(1)

    assert world.attempts() == [(1, "blocked")]
    assert listener.accepted == 0
