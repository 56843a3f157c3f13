"""Helpers that register webhook endpoints as a partner."""

from tests.conftest import Running

URL = "https://93.184.216.34:8443/hook"
UNKNOWN = "018f0000-0000-7000-8000-000000000000"


async def register(running: Running, prefix="", **body):
    return await running.call("POST", f"{prefix}/v1/webhooks", json={"url": URL, **body})


async def registered(running: Running, prefix="", **body):
    status, endpoint, _ = await register(running, prefix, **body)
    assert status == 201
    return endpoint
