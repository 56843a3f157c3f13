"""Links follow the machine's addresses: none yet, one that comes, another, none any more."""

import asyncio

import pytest

from appliance.data_directory import DataDirectory
from web.names import whereabouts
from web.names.whereabouts import find_address, moving

ANYWHERE, PORT = "0.0.0.0", 8080  # noqa: S104 - nothing listens


class House:
    """A network that the test plugs in and out."""

    def __init__(self):
        self.address = None
        self.listeners = []

    def has_way_out(self):
        return self.address is not None

    def watch(self, callback):
        self.listeners.append(callback)
        return lambda: self.listeners.remove(callback)

    def give(self, address):
        self.address = address
        for callback in tuple(self.listeners):
            callback()


@pytest.fixture
def house(monkeypatch):
    found = House()
    monkeypatch.setattr(whereabouts, "own_addresses", lambda: [found.address or "none"])
    monkeypatch.setattr(whereabouts, "_address_that_leads_out", lambda: found.address)
    monkeypatch.setattr(whereabouts, "_SETTLE_SECONDS", 0.0)
    return found


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - no hook for tests
            await asyncio.sleep(0.005)


async def test_links_of_both_environments_follow_and_keep_the_last_address(box, house, tmp_path):
    directory = DataDirectory(tmp_path)
    box.move("http://127.0.0.1:8080")
    async with moving(box, directory, ANYWHERE, PORT, house):
        for address in ("192.168.1.7", "192.168.1.9"):
            await until(lambda: house.listeners)
            house.give(address)
            await until(lambda url=f"http://{address}:8080": box.live.links.base == url)
            assert box.test.links.base == f"http://{address}:8080/test"
            assert directory.remembered_address() == f"http://{address}:8080"

        house.give(None)
        await asyncio.sleep(0.05)
        assert box.live.links.base == "http://192.168.1.9:8080"
    assert house.listeners == []


@pytest.mark.parametrize(
    ("host", "remembered", "found"),
    [
        ("10.0.0.5", None, "http://10.0.0.5:8080"),
        (ANYWHERE, None, "http://127.0.0.1:8080"),
        (ANYWHERE, "http://10.0.0.9:8080", "http://10.0.0.9:8080"),
        (ANYWHERE, "http://10.0.0.9:9090", "http://127.0.0.1:8080"),  # of another port
        (ANYWHERE, "https://riad.example", "http://127.0.0.1:8080"),  # kept by an older version
    ],
)
def test_without_a_network_it_is_where_it_listens_or_was_last(house, host, remembered, found):
    assert find_address(host, PORT, remembered) == found
