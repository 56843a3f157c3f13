"""A relay for the tests of this folder."""

import pytest

from tests.app.relay.relay_world import a_relay


@pytest.fixture
async def relay(tmp_path):
    async with a_relay(tmp_path / "relay") as world:
        yield world
