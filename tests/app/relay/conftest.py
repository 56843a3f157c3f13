"""A relay for the tests of this folder, and a box's data directory."""

import pytest

from tests.app.relay.relay_world import a_relay


@pytest.fixture
async def relay(unused_tcp_port):
    async with a_relay(unused_tcp_port) as world:
        yield world


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "joined"
    path.mkdir()
    return path
