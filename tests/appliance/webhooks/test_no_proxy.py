"""A delivery goes where it was checked that it may go, whatever the environment says (S17)."""

import pytest

from tests.appliance.webhooks.attempts import REQUEST


@pytest.mark.proves("S17")
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_sees_no_delivery(
    client, receiver, open_receiver, monkeypatch, name
):
    proxy = await open_receiver()
    monkeypatch.setenv(name, proxy.url)

    await client.post(REQUEST)

    assert len(receiver.requests) == 1
    assert proxy.connections == 0
