"""Fixtures: a signed-in owner, manager and host, each with their own browser."""

import pytest

from appliance.commands.console import Console
from appliance.commands.init import found_unfurnished_box
from appliance.core.data_directory import DataDirectory
from appliance.core.settings import Settings
from appliance.core.tokens import Tokens
from tests.app.portal.people import a_person
from tests.conftest import running_box


@pytest.fixture
async def new_box(tmp_path, clock):
    """A new box without an owner."""
    found_unfurnished_box(DataDirectory(tmp_path), Console(clock, Tokens(), {}))
    async with running_box(tmp_path, clock, Settings()) as running:
        yield running


@pytest.fixture(autouse=True)
def known_hosts(monkeypatch):
    """The host names that DNS resolves in the test, instead of real ones."""
    known = {"atlas.example.com", "riad.example", "box.example.com"}

    async def exists(host):
        return host in known

    monkeypatch.setattr("web.portal.box.host_exists", exists)
    return known


@pytest.fixture
async def owner(running):
    return await a_person(running, "owner")


@pytest.fixture
async def manager(running):
    return await a_person(running, "manager")


@pytest.fixture
async def host(running):
    return await a_person(running, "host", "Yasmine")
