"""Run the box: open it, listen, say so, and leave in good order (operations.md)."""

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial

from aiohttp import web

from appliance.box import Box, open_box
from appliance.commands.console import Console
from appliance.data_directory import DataDirectory
from appliance.errors import Trouble
from appliance.poke import hear_pokes
from appliance.settings import Settings
from web.application import build_application
from web.connection import Connection
from web.connection_limit import ConnectionLimit, affordable_connections
from web.drain import Drain

log = logging.getLogger(__name__)

_PRIVATE = 0o077
_BACKLOG = 1024
_ACCEPTED_AT_ONCE = 16
_KEEP_ALIVE_SECONDS = 30.0
# With the databases to close, below the 10 s that are promised.
_DRAIN_SECONDS = 5.5  # a booking may wait 5 s for the mail server
_CLEAN_UP_SECONDS = 4.0
_CUT_OFF_SECONDS = 0.5
_SWITCH_SECONDS = 0.0005  # the writer thread waits less for the loop: 5,700/s instead of 4,700/s


@dataclass(slots=True)
class Stopping:
    """Why and when the process ends. A second signal changes nothing: it is ending already."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    status: int = 0

    def on_signal(self) -> None:
        """Somebody wants the box to stop."""
        self.asked.set()

    def on_broken(self, error: BaseException) -> None:
        """The disk failed: leave with status 1, and let the next start look at the files."""
        print(
            f"venuebox: the disk failed ({error}), nothing more is accepted: "
            "check the disk, then start again",
            file=sys.stderr,
        )
        self.status = 1
        self.asked.set()


Beside = Callable[[Box], AbstractAsyncContextManager[None]]


def run_serve(arguments: argparse.Namespace, console: Console) -> int:
    """`venuebox serve`: the exit status."""
    directory = console.directory(arguments)
    directory.check()
    settings = console.settings(directory)
    host = arguments.host or settings.server.host
    port = settings.server.port if arguments.port is None else arguments.port
    listener = listen(host, port)
    return serve_directory(directory, settings, console, listener, host=host)


def serve_directory(
    directory: DataDirectory,
    settings: Settings,
    console: Console,
    listener: socket.socket,
    *,
    host: str,
    beside: Beside | None = None,
) -> int:
    """Serve the box in `directory` on `listener` until a signal; the exit status.

    `beside` is entered with the open box before the first request is accepted, and left
    after the last. Prints `ready http://H:P` in between. Trouble when another process
    serves the directory.
    """
    os.umask(_PRIVATE)
    sys.setswitchinterval(_SWITCH_SECONDS)
    with directory.lock(), listener:
        return asyncio.run(_serve(directory, settings, console, listener, host, beside))


async def _serve(
    directory: DataDirectory,
    settings: Settings,
    console: Console,
    listener: socket.socket,
    host: str,
    beside: Beside | None,
) -> int:
    stopping = Stopping()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.on_signal)
    port = listener.getsockname()[1]
    app_url = settings.server.app_url or f"http://{_reachable(host)}:{port}"
    box = open_box(
        directory.root,
        directory.master_key(),
        settings,
        app_url=app_url,
        clock=console.clock,
        tokens=console.tokens,
        zones=console.zones,
        on_broken=stopping.on_broken,
    )
    try:
        directory.remember_address(app_url)
        with hear_pokes(directory.poke, box.look_again):
            async with nullcontext() if beside is None else beside(box):
                address = f"http://{_in_url(host)}:{port}"
                await _accept_until_stopped(box, listener, address, stopping)
    finally:
        await box.close()
    return stopping.status


async def _accept_until_stopped(
    box: Box, listener: socket.socket, address: str, stopping: Stopping
) -> None:
    app = build_application(box)
    drain = Drain(app)
    runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=_CUT_OFF_SECONDS)
    await runner.setup()
    assert runner.server is not None  # noqa: S101 - the setup made it
    limit = ConnectionLimit(affordable_connections(), box.settings.server.trusted_proxies)
    connection = partial(Connection, runner.server, limit, keep_alive=_KEEP_ALIVE_SECONDS)
    try:
        server = await asyncio.get_running_loop().create_server(
            connection, sock=listener, backlog=_ACCEPTED_AT_ONCE
        )
        # For asyncio the two are one: it would open a thousand files before it counted any.
        listener.listen(_BACKLOG)
        gc.freeze()  # what the program is made of need not be looked at again
        print(f"ready {address}", flush=True)
        await stopping.asked.wait()
        server.close()
        if not await drain.wait(_DRAIN_SECONDS):
            log.warning("some requests did not end in time and are cut off")
    finally:
        await _clean_up(runner)


async def _clean_up(runner: web.AppRunner) -> None:
    """Stop what works in the background. What is cut off is done again after the next start."""
    try:
        async with asyncio.timeout(_CLEAN_UP_SECONDS):
            await runner.cleanup()
    except TimeoutError:
        log.warning("some deliveries did not end in time and are sent again later")


def listen(host: str, port: int) -> socket.socket:
    """A bound socket, not accepting yet; Trouble when the address cannot be had."""
    try:
        kind, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(kind, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise Trouble(
            f"{_in_url(host)}:{port} cannot be listened on ({error.strerror}): "
            "choose another with --host and --port"
        ) from None
    listener.setblocking(False)  # noqa: FBT003 - the library's own way to say it
    return listener


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _reachable(host: str) -> str:
    """What other machines may call this one; set server.app_url where this guess is wrong."""
    if host not in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not listened on
        return _in_url(host)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses a route
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
