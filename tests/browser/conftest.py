"""Fixtures of the browser tests: the worlds with their servers, and the shared browser."""

import pytest
import pytest_asyncio
from aiohttp.test_utils import TestServer

from tests.browser.chromium import browser_fixture, running_chromium
from tests.browser.door_world import door_world
from tests.browser.portal_world import portal_world
from tests.conftest import opened_box, running_box

_HERE = __name__.rpartition(".")[0]


def pytest_collection_modifyitems(items):
    """Run all tests of this folder on the session's event loop, which owns the browser."""
    for item in items:
        if item.module.__name__.startswith(_HERE) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@browser_fixture(scope="session")
async def chromium():
    """The object that starts browsers."""
    async with running_chromium() as started:
        yield started


@browser_fixture
async def browser(chromium):
    """The shared browser. Contexts that a test leaves open are closed."""
    shared = await chromium.shared()
    yield shared
    for context in shared.contexts:
        await context.close()


@browser_fixture
async def box(tmp_path, clock, settings):
    """The box of `tests/conftest.py`."""
    async with opened_box(tmp_path, clock, settings) as opened:
        yield opened


@browser_fixture
async def running(tmp_path, clock, settings):
    """The box of `tests/conftest.py`, with its application."""
    async with running_box(tmp_path, clock, settings) as answering:
        yield answering


@browser_fixture
async def door(tmp_path, clock, settings, chromium):
    """The live environment, with phones at its doors."""
    async with door_world(tmp_path, clock, settings, chromium) as world:
        yield world


@browser_fixture
async def portal(tmp_path, clock, settings, chromium, browser):
    """The portal of the live environment, and a browser of its staff."""
    async with portal_world(tmp_path, clock, settings, chromium, browser) as world:
        yield world


@browser_fixture
async def server(world):
    """A server of the guest pages of the test's `world`."""
    async with TestServer(world.app) as started:
        yield started
