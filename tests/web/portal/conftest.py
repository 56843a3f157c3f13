"""Staff who are signed in, each in a browser of their own."""

import pytest

from tests.web.portal.people import a_person


@pytest.fixture
async def owner(running):
    return await a_person(running, "owner")


@pytest.fixture
async def manager(running):
    return await a_person(running, "manager")


@pytest.fixture
async def host(running):
    return await a_person(running, "host", "Yasmine")
