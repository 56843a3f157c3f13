"""Start the box, serve requests, and shut down cleanly."""

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial

from aiohttp import web

from appliance.box import Box, open_box
from appliance.clock import BoxClock, kernel_is_synchronised
from appliance.commands.console import Console
from appliance.commands.init import found_unfurnished_box
from appliance.core.data_directory import DataDirectory, listen_for_wakeups
from appliance.core.errors import OperatorError
from appliance.core.network import in_url
from appliance.core.saved_settings import Changes, save_settings
from appliance.core.settings import Settings
from appliance.environment import staff_base
from appliance.jobs.watchdog import DiskReserve, background_services, sd_notify
from appliance.logs import open_log, print_error
from appliance.staff.accounts import is_closed, offer_setup
from appliance.tls.certificates import Certificates
from web.application import build_application
from web.connection import Connection, ConnectionLimit, affordable_connections
from web.error_pages import refuse_unread
from web.listeners import CountedTls, Listening, accept_tls, listen, open_certificates
from web.mdns import find_addresses, find_local_address, following, refuse_duplicate
from web.middleware import REQUESTS, SETUP_PATH
from web.relay.client import RelayClient

log = logging.getLogger(__name__)

_UMASK = 0o077
_BACKLOG = 1024
_ACCEPTED_AT_ONCE = 16
# The longest times for the steps of a shutdown. With closing the databases, it takes about 10 s.
_DRAIN_SECONDS = 5.5  # longer than the 5 s that a booking may wait for the mail server
_CLEAN_UP_SECONDS = 4.0
_CUT_OFF_SECONDS = 0.5
# The number of seconds that a Python thread may run while another thread waits. With this value,
# the box performs 5,700 writes/s. With Python's default of 0.005 s, it performs 4,700.
_SWITCH_SECONDS = 0.0005


@dataclass(slots=True)
class Stopping:
    """Records whether the box should stop, and with which exit status."""

    requested: asyncio.Event = field(default_factory=asyncio.Event)
    status: int = 0

    def on_signal(self) -> None:
        """Stop the box. A second signal has no effect."""
        self.requested.set()

    def on_broken(self, error: BaseException) -> None:
        """Stop with status 1 after a disk failure. The next start checks the files."""
        sentence = f"the disk failed ({error}). The box stops. Check the disk, then start the box."
        print_error(sentence, os.environ)
        self.status = 1
        self.on_signal()


OnOpen = Callable[[Box], Awaitable[None]]


def run_serve(arguments: argparse.Namespace, console: Console) -> int:
    """Run `venuebox serve` and return the exit status."""
    directory = console.directory(arguments)
    if directory.is_free():
        found_unfurnished_box(directory, console)
    directory.check()
    settings = console.settings(directory)
    host = arguments.host or settings.server.host
    port = settings.server.port if arguments.port is None else arguments.port
    try:
        listener = listen(host, port)
    except OperatorError:
        with directory.lock():  # if the box is already running, this raises a clearer error
            raise
    port = listener.getsockname()[1]

    async def prepare(box: Box) -> None:
        if not arguments.force:
            await refuse_duplicate(box, host)
        local = find_local_address(host, port) or staff_base(box.live.links, box.settings.server)
        await show_setup_link(box, local)

    return serve_directory(
        directory, settings, console, listener, host=host, on_open=prepare, keeps_settings=True
    )


def serve_directory(
    directory: DataDirectory,
    settings: Settings,
    console: Console,
    listener: socket.socket,
    *,
    host: str,
    on_open: OnOpen,
    keeps_settings: bool = False,
) -> int:
    """Serve the box in `directory` on `listener` until a signal arrives. Return the exit status.

    Awaits `on_open` with the open box, then prints `ready http://H:P` and accepts requests. With
    `keeps_settings`, the owner may change settings in the portal. Raises OperatorError if another
    process already serves the directory.
    """
    os.umask(_UMASK)
    sys.setswitchinterval(_SWITCH_SECONDS)
    with directory.lock():
        reserve = DiskReserve(directory.root)
        reserve.release_if_full()
        directory.sweep()
        open_log(directory.root / "log")
        # The system's folder for temporary files may be full, or cleared while the box runs.
        tempfile.tempdir = str(directory.tmp)
        stopping, listening = Stopping(), Listening(host, listener)
        with listener, listening.bind_tls(settings.server.tls_port):
            asyncio.run(
                _serve(
                    directory, settings, console, listening, on_open, stopping, reserve,
                    keeps_settings=keeps_settings,
                )
            )  # fmt: skip
        return stopping.status


async def _serve(
    directory: DataDirectory,
    settings: Settings,
    console: Console,
    listening: Listening,
    on_open: OnOpen,
    stopping: Stopping,
    reserve: DiskReserve,
    *,
    keeps_settings: bool,
) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.on_signal)
    host, port = listening.host, listening.port

    def bind(found: Settings) -> Settings:
        """Return the settings with the host and port from the command line."""
        return replace(found, server=replace(found.server, host=host, port=port))

    def save(changes: Changes) -> Settings:
        return bind(save_settings(directory.settings_file, changes, console.environ))

    settings = bind(settings)
    addresses = find_addresses(
        host, port, directory.remembered_address(), settings.server.house_address
    )
    box = open_box(
        directory.root,
        directory.master_key(),
        settings,
        address=addresses[0],
        clock=BoxClock(console.clock, kernel_is_synchronised),
        tokens=console.tokens,
        zones=console.zones,
        on_broken=stopping.on_broken,
    )
    try:
        box.move(*addresses)
        directory.remember_address(addresses[0])
        directory.remember_host(host)
        certificates = open_certificates(directory, box) if listening.tls else None

        if keeps_settings:
            box.save_settings = save

        def reload() -> None:
            if keeps_settings:
                try:
                    box.apply(bind(console.settings(directory)))
                except OperatorError as error:
                    log.warning("serve: the settings stay as they are: %s", error)
            box.look_for_changes()
            if certificates is not None:
                certificates.load()

        with listen_for_wakeups(directory.wakeup_pipe, reload):
            await on_open(box)
            async with (
                following(box, host, port),
                background_services(box, os.environ, reserve),
            ):
                app = build_application(box, certificates, directory)
                await _accept_until_stopped(app, box, directory, listening, stopping, certificates)
    finally:
        await box.close()


async def _accept_until_stopped(
    app: web.Application,
    box: Box,
    directory: DataDirectory,
    listening: Listening,
    stopping: Stopping,
    certificates: Certificates | None,
) -> None:
    runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=_CUT_OFF_SECONDS)
    await runner.setup()
    assert runner.server is not None  # noqa: S101 - set by `setup`
    limit = ConnectionLimit(affordable_connections())
    uncounted = ConnectionLimit(sys.maxsize, per_address=sys.maxsize)

    def trust(settings: Settings) -> None:
        for each in (limit, uncounted):
            each.trust(settings.server.trusted_proxies)

    trust(box.settings)
    box.on_settings.append(trust)
    unread = partial(refuse_unread, app)
    connection = partial(Connection, runner.server, limit, unread)
    relay = RelayClient(box, directory.root)
    try:
        plain = await asyncio.get_running_loop().create_server(
            connection, sock=listening.plain, backlog=_ACCEPTED_AT_ONCE
        )
        servers = [plain]
        # Set the length of the accept queue here. asyncio also uses `backlog` as the number of
        # connections that it accepts at once. With a large `backlog`, it could accept more
        # connections than `limit` allows before it counts the first of them.
        listening.plain.listen(_BACKLOG)
        if listening.tls and certificates:
            inner = partial(Connection, runner.server, uncounted, unread)
            context = certificates.context
            servers.append(await accept_tls(listening.tls, inner, context, limit))
            relay.start(lambda: CountedTls(inner(), context, limit))
        else:
            relay.start(None)
        gc.freeze()  # exclude the loaded code from garbage collection
        print(f"ready http://{in_url(listening.host)}:{listening.port}", flush=True)
        sd_notify(os.environ, "READY=1")
        await stopping.requested.wait()
        for server in servers:
            server.close()
        relay.stop_accepting()
        if not await app[REQUESTS].drain(_DRAIN_SECONDS):
            log.warning("serve: some requests did not finish in time and were aborted")
    finally:
        try:
            async with asyncio.timeout(_CLEAN_UP_SECONDS):
                await relay.close()
                await runner.cleanup()
        except TimeoutError:
            log.warning("serve: some deliveries did not finish in time and will be retried")


async def show_setup_link(box: Box, local: str) -> None:
    """If the box has no owner, print a new one-time setup link. Older links become invalid.

    `local` is the box's base URL on this machine. If the box has https, also print a link for
    other machines, because the password must not be sent over plain http.
    """
    if not box.live.database.peek(is_closed):
        return
    secret = await box.live.database.write(offer_setup)
    link = f"{local}{SETUP_PATH}#{secret}"
    lines = [
        "This box is new. Set it up here, within 30 minutes; the link works once:",
        f"\n  {link}\n",
    ]
    elsewhere = staff_base(box.live.links, box.settings.server)
    if elsewhere.startswith("https:") and elsewhere != local:
        link = f"{elsewhere}{SETUP_PATH}#{secret}"
        lines += [
            "Or set it up from another machine. Its browser may warn once that it does not trust",
            "this box (venuebox doctor prints the fingerprint to compare):",
            f"\n  {link}\n",
        ]
    print(*lines, "If the link expires, restart venuebox to get a new one.", sep="\n", flush=True)
