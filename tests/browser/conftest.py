"""The door app's world, for the tests of this folder that ask for it."""

import pytest
from playwright.async_api import async_playwright

from tests.browser.door_world import door_world
from tests.browser.portal_world import portal_world


@pytest.fixture
async def door(tmp_path, clock, settings):
    """The live environment of a box, at whose doors phones stand."""
    async with (
        async_playwright() as playwright,
        door_world(tmp_path, clock, settings, playwright) as world,
    ):
        yield world


@pytest.fixture
async def test_environment_door(tmp_path, clock, settings):
    """The same in the test environment."""
    async with (
        async_playwright() as playwright,
        door_world(tmp_path, clock, settings, playwright, name="test") as world,
    ):
        yield world


@pytest.fixture
async def portal(tmp_path, clock, settings):
    """The live environment of a box, and the browser of the house."""
    async with (
        async_playwright() as playwright,
        portal_world(tmp_path, clock, settings, playwright) as world,
    ):
        yield world
