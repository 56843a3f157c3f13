"""What fails for a moment while the network changes is done a moment later."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from aiohttp import web

from appliance.data_directory import DataDirectory
from appliance.errors import Unavailable
from appliance.tls.certificates import Certificates
from appliance.tls.files import LEAF, read_identity
from appliance.tls.names import Names
from tests.web.names.test_whereabouts import ANYWHERE, PORT, House, until
from web.names import mdns, tls, whereabouts
from web.names.mdns import announcing
from web.names.tls import renewing
from web.names.whereabouts import keep_at, moving


@pytest.fixture
def house(monkeypatch):
    """A network with one address, at which the first look fails if `trouble` is set."""
    found = House()
    found.address, found.trouble = "192.168.1.7", None

    def look():
        trouble, found.trouble = found.trouble, None
        if trouble is not None:
            raise trouble
        return [found.address]

    for module in (mdns, whereabouts):
        monkeypatch.setattr(module, "own_addresses", look)
    monkeypatch.setattr(whereabouts, "_address_that_leads_out", lambda: found.address)
    monkeypatch.setattr(whereabouts, "_SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(whereabouts, "_AGAIN_SECONDS", 0.0)
    return found


@pytest.fixture
def told(monkeypatch):
    """What is announced just now; `trouble` is what the library raises, once."""
    found = SimpleNamespace(now=[], trouble=None)

    @asynccontextmanager
    async def announced(_info, addresses):
        trouble, found.trouble = found.trouble, None
        if trouble is not None:
            raise trouble
        found.now.append(list(addresses))
        try:
            yield
        finally:
            found.now.pop()

    library = SimpleNamespace(announced=announced, describe=lambda *_, tls: tls)
    monkeypatch.setattr(mdns, "_read_announcement", lambda: library)
    return found


async def test_an_address_that_is_gone_before_it_is_announced_on_ends_no_announcing(
    box, house, told
):
    told.trouble = RuntimeError("No adapter found for IP address")  # as the library says it
    async with announcing(box, ANYWHERE, PORT, house):
        await until(lambda: told.now == [["192.168.1.7"]])

        told.trouble = RuntimeError("No adapter found for IP address")
        house.give("192.168.1.9")

        await until(lambda: told.now == [["192.168.1.9"]])
    assert told.now == []


@pytest.mark.parametrize("trouble", [OSError("no netlink"), Unavailable()])
async def test_a_look_that_fails_is_not_the_last_one(box, house, told, tmp_path, trouble):
    box.move("http://127.0.0.1:8080")
    house.trouble = trouble
    async with announcing(box, ANYWHERE, PORT, house):
        await until(lambda: told.now == [["192.168.1.7"]])
    house.trouble = trouble
    async with moving(box, DataDirectory(tmp_path), ANYWHERE, PORT, house):
        await until(lambda: box.live.links.base == "http://192.168.1.7:8080")


@pytest.mark.parametrize("trouble", [Unavailable(), ValueError("a name that spoils it")])
async def test_a_certificate_that_cannot_be_renewed_today_is_renewed_tomorrow(
    box, tmp_path, clock, monkeypatch, trouble
):
    monkeypatch.setattr(tls, "_DAY_SECONDS", 0.01)
    troubles = []

    def wanted():
        if troubles:
            raise troubles.pop()
        return Names(("localhost",), ("127.0.0.1",))

    certificates = Certificates(tmp_path / "tls", clock, lambda: "Riad", wanted, lambda: False)
    certificates.prepare()
    first = read_identity(tmp_path / "tls" / LEAF).certificate
    clock.advance(800 * 86_400)
    troubles.append(trouble)
    looking = renewing(certificates, box.live.database, lambda: True)(web.Application())

    await anext(looking)
    await until(lambda: read_identity(tmp_path / "tls" / LEAF).certificate != first)

    assert await anext(looking, None) is None


async def test_an_accident_that_stays_is_met_ever_later_and_a_new_one_in_a_minute(monkeypatch):
    slept, now, took = [], [1000.0], [0.0]

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 8:
            took[0] = 7200.0  # for two hours all is well
        if len(slept) == 10:
            raise asyncio.CancelledError

    async def fail():
        now[0] += took[0]
        took[0] = 0.0
        raise OSError

    monkeypatch.setattr(whereabouts, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(whereabouts, "time", SimpleNamespace(monotonic=lambda: now[0]))

    with pytest.raises(asyncio.CancelledError):
        await keep_at("trying", fail)

    assert slept == [60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0, 60.0, 120.0]
