"""What the end of a test's event loop does with connections."""

import asyncio
import contextlib
import gc
import socket
import warnings

import pytest
from aiohttp import web


async def closed_when_somebody_comes(knocking, turns):
    """A server that is closed `turns` of the loop after somebody knocked."""
    runner = web.AppRunner(web.Application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    knocking.connect(runner.addresses[0][:2])
    for _ in range(turns):
        await asyncio.sleep(0)
    await runner.cleanup()


# In the second turn the connection was taken, and its transport is made after the server's end.
@pytest.mark.parametrize("turns", range(1, 6))
def test_who_came_as_the_server_closed_is_dropped_without_a_complaint(turns):
    with socket.socket() as knocking, warnings.catch_warnings():
        warnings.simplefilter("error")

        asyncio.run(closed_when_somebody_comes(knocking, turns))

        gc.collect()
        knocking.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            assert knocking.recv(1) == b""


def test_a_connection_that_was_opened_and_forgotten_fails_the_test_that_did_it():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        forgotten = []

        async def open_and_forget():
            loop = asyncio.get_running_loop()
            forgotten.append(
                await loop.create_connection(asyncio.Protocol, *listening.getsockname())
            )

        with pytest.raises(AssertionError, match="left open when the event loop ended"):
            asyncio.run(open_and_forget())
