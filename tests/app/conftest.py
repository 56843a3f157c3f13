"""Fixtures for the tests of several packages."""

import pytest

from tests.webhooks.receivers import Receiver, a_server


@pytest.fixture
async def receiver():
    """A partner's webhook receiver on loopback."""
    found = Receiver()
    async with a_server(found.converse) as port:
        found.port = port
        yield found
