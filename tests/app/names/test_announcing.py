"""The box's links and its announced name follow the machine's addresses and the venue's slug."""

import asyncio
from contextlib import asynccontextmanager
from ipaddress import ip_interface
from types import SimpleNamespace

import pytest

from appliance.core.data_directory import DataDirectory
from appliance.core.network import Interface
from appliance.venue.edit import apply_venue
from appliance.venue.venue_file import parse_venue_file
from tests.unit.commands.conftest import VENUE
from tests.waiting import until
from web import mdns
from web.mdns import find_addresses, following

ANYWHERE, PORT = "0.0.0.0", 8080  # noqa: S104 - nothing listens


def an_interface(address, index=2):
    return Interface("eth0", index, ip_interface(f"{address}/24"))


@pytest.fixture
def house(monkeypatch):
    """A network with one address. If `trouble` is set, the next check raises it."""
    found = SimpleNamespace(address="192.168.1.7", index=2, trouble=None)

    def look():
        trouble, found.trouble = found.trouble, None
        if trouble is not None:
            raise trouble
        return [an_interface(found.address, found.index)] if found.address else []

    monkeypatch.setattr(mdns, "own_interfaces", look)
    monkeypatch.setattr(mdns, "source_address", lambda _: found.address)
    monkeypatch.setattr(mdns, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(mdns, "_LOOK_WITHOUT_SECONDS", 0.01)
    return found


@pytest.fixture
def told(monkeypatch):
    """The services announced now and in total. If `trouble` is set, the library raises it once."""
    found = SimpleNamespace(now=[], all=[], trouble=None)

    @asynccontextmanager
    async def announced(info, _addresses):
        trouble, found.trouble = found.trouble, None
        if trouble is not None:
            raise trouble
        found.now.append(info)
        found.all.append(info)
        try:
            yield
        finally:
            found.now.remove(info)

    def describe(venue, at, _port, *, tls):
        return venue.slug, tuple(at), tls

    monkeypatch.setattr(mdns, "announced", announced)
    monkeypatch.setattr(mdns, "describe", describe)
    return found


async def test_links_of_both_environments_follow_the_address_and_keep_the_last_one(
    box, house, told, tmp_path
):
    directory = DataDirectory(tmp_path)
    box.move("http://127.0.0.1:8080")
    async with following(box, ANYWHERE, PORT):
        for address in ("192.168.1.7", "192.168.1.9"):
            house.address = address
            await until(lambda url=f"http://{address}:8080": box.live.links.base == url)
            assert box.test.links.base == f"http://{address}:8080/test"
            assert directory.remembered_address() == f"http://{address}:8080"

        house.address = None
        await until(lambda: not told.now)
        assert box.live.links.base == "http://192.168.1.9:8080"


@pytest.mark.parametrize(
    ("host", "remembered", "found"),
    [
        ("10.0.0.5", None, "http://10.0.0.5:8080"),
        (ANYWHERE, None, "http://127.0.0.1:8080"),
        (ANYWHERE, "http://10.0.0.9:8080", "http://10.0.0.9:8080"),
        (ANYWHERE, "http://10.0.0.9:9090", "http://127.0.0.1:8080"),  # a different port
        (ANYWHERE, "https://riad.example", "http://127.0.0.1:8080"),  # stored by an older version
    ],
)
def test_without_a_network_the_address_is_the_configured_or_last_known_one(
    house, host, remembered, found
):
    house.address = None
    assert find_addresses(host, PORT, remembered) == (found,)


@pytest.mark.parametrize(
    ("remembered", "found"),
    [
        (None, "http://192.168.1.7:8080"),
        ("http://127.0.0.1:8080", "http://192.168.1.7:8080"),
        ("http://192.168.1.9:8080", "http://192.168.1.7:8080"),
        ("http://192.168.1.8:8080", "http://192.168.1.8:8080"),
    ],
)
def test_in_a_network_without_a_router_the_machines_own_address_is_used(
    monkeypatch, remembered, found
):
    own = [an_interface("192.168.1.7"), an_interface("192.168.1.8")]
    monkeypatch.setattr(mdns, "own_interfaces", lambda: own)
    monkeypatch.setattr(mdns, "source_address", lambda _: None)

    assert find_addresses(ANYWHERE, PORT, remembered)[0] == found


def renamed(tx, slug):
    apply_venue(tx, parse_venue_file(VENUE.replace("riad-atlas", slug), tx.zones))


async def test_a_changed_slug_is_announced_immediately(box, house, told, monkeypatch):
    monkeypatch.setattr(mdns, "_LOOK_SECONDS", 3600.0)
    async with following(box, ANYWHERE, PORT):
        await until(lambda: told.now)
        [(before, _, _)] = told.now

        await box.live.database.write(renamed, "dar-zitoun")

        await until(lambda: told.now and told.now[0][0] == "dar-zitoun")
        assert before != "dar-zitoun"
        assert len(told.now) == 1
    assert told.now == []


async def test_without_an_address_nothing_is_announced_until_there_is_one(box, house, told):
    house.address = None
    async with following(box, ANYWHERE, PORT):
        await asyncio.sleep(0.05)
        assert told.now == []
        house.address = "192.168.1.9"
        await until(lambda: told.now and told.now[0][1] == ("192.168.1.9",))


async def test_a_failed_update_of_the_address_is_retried_and_announced_meanwhile(
    box, house, told, tmp_path, monkeypatch
):
    directory, remember = DataDirectory(tmp_path), DataDirectory.remember_address
    disk = SimpleNamespace(is_full=True)

    def fail(self, address):
        if disk.is_full:
            raise OSError("no space left on device")
        remember(self, address)

    monkeypatch.setattr(DataDirectory, "remember_address", fail)
    async with following(box, ANYWHERE, PORT):
        await until(lambda: told.now)
        assert directory.remembered_address() is None
        disk.is_full = False
        await until(lambda: directory.remembered_address() == "http://192.168.1.7:8080")
    assert len(told.all) == 1
