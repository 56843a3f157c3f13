import pytest

from tests.app.guest.guest_world import guest_worlds


@pytest.fixture
async def worlds(box, clock):
    return guest_worlds(box, clock)


@pytest.fixture
async def world(worlds):
    return worlds[0]


@pytest.fixture
async def guest(world, aiohttp_client):
    return await aiohttp_client(world.app, headers={"Accept-Language": "fr"})
