"""Run the relay: the SSH server for boxes, the public ports, and the status page."""

import argparse
import asyncio
import logging
import os
import signal
import socket
from pathlib import Path

import asyncssh
from aiohttp import web

from appliance.clock import Clock
from appliance.core import files
from appliance.core.data_directory import DataDirectory, listen_for_wakeups
from appliance.core.errors import OperatorError
from appliance.http.rate_limit import RateLimit
from appliance.jobs.watchdog import keep_alive, sd_notify
from appliance.relay_access import RelayAddress
from web.connection import ConnectionLimit, affordable_connections
from web.listeners import listen
from web.relay.enrolment import Enrolments
from web.relay.router import Patience, Router
from web.relay.server import Boxes, Limits, listen_for_boxes
from web.relay.status import build_status
from web.relay.storage import BoxFiles

_HOST_KEY = "ssh_host_key"
_BACKLOG = 1024


def run_relay(
    root: Path, clock: Clock, options: argparse.Namespace, limits: Limits, token: str
) -> None:
    """Run the relay in `root` until a signal arrives. `options` are those of the command.

    Raises OperatorError if a port is taken or another relay runs in the directory.
    """
    os.umask(0o077)
    logging.getLogger("web.relay").setLevel(logging.INFO)  # log which boxes connect and disconnect
    files.make_folder(root)
    with files.exclusive(root, 0, f"another relay already uses {root}. Stop it first."):
        enrolments = Enrolments(root)
        enrolments.make_folders()
        boxes = Boxes(enrolments, clock, limits)
        limit = ConnectionLimit(affordable_connections(), per_address=options.source_connections)
        router = Router(boxes, limit, RateLimit(clock, options.source_per_minute), Patience())
        asyncio.run(_run(root, options, boxes, router, token))


async def _run(
    root: Path, options: argparse.Namespace, boxes: Boxes, router: Router, token: str
) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    key = host_key(root)
    ssh = listen(options.host, options.ssh_port, "--host and --ssh-port")
    tls = listen(options.host, options.tls_port, "--host and --tls-port")
    http = listen(options.host, options.http_port, "--host and --http-port")
    status = listen(options.status_host, options.status_port, "--status-host and --status-port")
    runner = web.AppRunner(build_status(boxes, router, token), access_log=None)
    with listen_for_wakeups(DataDirectory(root).wakeup_pipe, boxes.reload):
        accepting = await listen_for_boxes(boxes, ssh, key, BoxFiles)
        await runner.setup()
        await web.SockSite(runner, status).start()
        public = [
            await asyncio.start_server(router.serve_tls, sock=tls, backlog=_BACKLOG),
            await asyncio.start_server(router.serve_http, sock=http, backlog=_BACKLOG),
        ]
        address = RelayAddress(options.address, _port(ssh), fingerprint_of(key))
        boxes.enrolments.set_address(address)
        ports = {"ssh": ssh, "tls": tls, "http": http, "status": status}
        print("ready", *(f"{name} {_port(each)}" for name, each in ports.items()), flush=True)
        sd_notify(os.environ, "READY=1")
        beat = asyncio.create_task(keep_alive(os.environ), name="watchdog")
        await stopping.wait()
        beat.cancel()
        for server in public:
            server.close()
        accepting.close()
        await router.close()
        boxes.close()
        await runner.cleanup()


def host_key(root: Path) -> asyncssh.SSHKey:
    """Return the relay's host key; create it at the first start.

    Raises OperatorError if other users can read the file or it is damaged.
    """
    path = root / _HOST_KEY
    try:
        return asyncssh.import_private_key(files.read_private(path))
    except FileNotFoundError:
        key = asyncssh.generate_private_key("ssh-ed25519")
        files.atomic_write(path, key.export_private_key())
        return key
    except asyncssh.KeyImportError:
        raise OperatorError(
            f"{path} is damaged. Restore it from a copy. If you delete it instead, the relay gets "
            "a new key and every box must join again."
        ) from None


def fingerprint_of(key: asyncssh.SSHKey) -> str:
    """Return the SHA-256 fingerprint of a key, as OpenSSH shows it."""
    return str(key.get_fingerprint())


def _port(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])
