"""What the tests of several rooms ask for."""

import pytest

from tests.appliance.webhooks.receivers import TargetUrl, a_server


@pytest.fixture
async def receiver():
    """A partner's program on loopback."""
    found = TargetUrl()
    async with a_server(found.converse) as port:
        found.port = port
        yield found
