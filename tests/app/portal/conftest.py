"""Fixtures: a signed-in owner, manager and host, each with their own browser."""

import pytest

from tests.app.portal.people import a_person


@pytest.fixture
async def owner(running):
    return await a_person(running, "owner")


@pytest.fixture
async def manager(running):
    return await a_person(running, "manager")


@pytest.fixture
async def host(running):
    return await a_person(running, "host", "Yasmine")
