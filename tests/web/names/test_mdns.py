"""The house hears the box's name: as it is, with the addresses as they are, for as long."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from appliance.actions.apply_venue import apply_venue
from appliance.model.venue_file import parse_venue_file
from appliance.store.session import session
from tests.appliance.commands.conftest import VENUE
from tests.web.names.test_whereabouts import ANYWHERE, House, until
from web.names import mdns, whereabouts
from web.names.mdns import announcing


@pytest.fixture
def told(monkeypatch):
    """What is announced just now; what was, stays in `all`."""
    found = SimpleNamespace(now=[], all=[])

    @asynccontextmanager
    async def announced(info, _addresses):
        found.now.append(info)
        found.all.append(info)
        try:
            yield
        finally:
            found.now.remove(info)

    def describe(slug, _name, addresses, _port, *, tls):
        return slug, tuple(addresses), tls

    library = SimpleNamespace(announced=announced, describe=describe)
    monkeypatch.setattr(mdns, "_read_announcement", lambda: library)
    return found


@pytest.fixture
def house(monkeypatch):
    found = House()
    found.address = "192.168.1.7"
    monkeypatch.setattr(mdns, "own_addresses", lambda: [found.address] if found.address else [])
    monkeypatch.setattr(whereabouts, "_SETTLE_SECONDS", 0.0)
    return found


def renamed(tx, slug):
    apply_venue(tx, parse_venue_file(VENUE.replace("riad-atlas", slug), tx.zones))


async def test_a_venue_that_gets_another_slug_is_announced_under_it_at_once(box, house, told):
    async with announcing(box, ANYWHERE, 8080, house):
        await until(lambda: told.now)
        [(before, _, _)] = told.now

        await box.live.database.write(renamed, "dar-zitoun")

        await until(lambda: told.now and told.now[0][0] == "dar-zitoun")
        assert before != "dar-zitoun"
        assert len(told.now) == 1
    assert told.now == []


async def test_a_command_beside_the_box_that_renames_the_venue_is_heard_too(box, house, told):
    path = box.live.database.path
    async with announcing(box, ANYWHERE, 8080, house):
        await until(lambda: told.now)
        with session(path, box.clock, box.tokens, box.zones) as tx:
            renamed(tx, "dar-zitoun")

        box.look_again()

        await until(lambda: told.now and told.now[0][0] == "dar-zitoun")
        box.look_again()  # something else has changed: the name is as it was
        await asyncio.sleep(0.05)
        assert len(told.all) == 2


async def test_without_an_address_nothing_is_announced_until_there_is_one(box, house, told):
    house.address = None
    async with announcing(box, ANYWHERE, 8080, house):
        await until(lambda: house.listeners)
        assert told.now == []

        house.give("192.168.1.9")

        await until(lambda: told.now and told.now[0][1] == ("192.168.1.9",))
