"""Run the relay: the SSH server for boxes, the public ports, and the status page.

The status page, metrics and health check are served only to this machine or with a token.
"""

import argparse
import asyncio
import logging
import os
import signal
import socket
from collections.abc import Iterator
from hmac import compare_digest
from pathlib import Path
from typing import Any

import asyncssh
from aiohttp import web
from aiohttp.typedefs import Handler

from appliance.clock import Clock, optional_instant
from appliance.core import files
from appliance.core.data_directory import DataDirectory, listen_for_wakeups
from appliance.core.errors import OperatorError
from appliance.http.rate_limit import RateLimit
from appliance.http.request import is_loopback
from appliance.http.security_headers import COMMON_HEADERS
from appliance.jobs.watchdog import keep_alive, sd_notify
from appliance.relay_access import RelayAddress
from web.connection import ConnectionLimit, affordable_connections
from web.listeners import listen
from web.middleware import requested_name
from web.monitoring import render_metrics
from web.relay.enrolment import Enrolments
from web.relay.router import Router
from web.relay.server import Boxes, Limits, listen_for_boxes
from web.relay.storage import BoxFiles, is_stopped, list_stages, read_report, used_bytes
from web.rendering import make_templates

_HOST_KEY = "ssh_host_key"
_BACKLOG = 1024


def run_relay(
    root: Path, clock: Clock, options: argparse.Namespace, limits: Limits, token: str
) -> None:
    """Run the relay in `root` until a signal arrives. `options` are those of the command.

    Raises OperatorError if a port is taken or another relay uses the directory.
    """
    os.umask(0o077)
    logging.getLogger("web.relay").setLevel(logging.INFO)  # log which boxes connect and disconnect
    files.make_folder(root)
    with files.exclusive(root, 0, f"another relay already uses {root}. Stop it first."):
        enrolments = Enrolments(root)
        enrolments.make_folders()
        boxes = Boxes(enrolments, clock, limits)
        limit = ConnectionLimit(affordable_connections(), per_address=options.source_connections)
        router = Router(boxes, limit, RateLimit(clock, options.source_per_minute))
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
        address = RelayAddress(options.address, _port(ssh), key.get_fingerprint())
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


def _port(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


_GAUGES = {
    "box_connected": "1 if the box is connected",
    "open_connections": "connections passed on now",
    "backup_bytes": "bytes of backups that the box keeps",
}
_COUNTERS = {
    "dials": "times the box has dialled in",
    "connections": "connections passed on",
    "refused": "connections refused: the box was away or had too many",
    "bytes_in": "bytes from the public to the box",
    "bytes_out": "bytes from the box to the public",
}


def build_status(boxes: Boxes, router: Router, token: str) -> web.Application:
    """Build the status page's application.

    A request must come from this machine or contain `token`. If `token` is "", only requests from
    this machine are answered.
    """
    template = make_templates().get_template("relay.html")

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        has_token = bool(token) and compare_digest(given.encode("utf-8", "replace"), token.encode())
        # Check the Host header too. In DNS rebinding, another site's name resolves to loopback.
        host = requested_name(request)
        is_here = is_loopback(request.remote or "") and (host == "localhost" or is_loopback(host))
        if not has_token and not is_here:
            raise web.HTTPNotFound
        return await handler(request)

    async def show_page(_request: web.Request) -> web.Response:
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        headers = {**COMMON_HEADERS, "Content-Security-Policy": policy}
        enrolments = boxes.enrolments
        listed = [
            (name, boxes.traffic[name], boxes.connection(name), read_report(enrolments, name))
            for name in boxes.names
        ]
        stages = [
            (machine, stage, is_stopped(enrolments, stage))
            for machine, stage in list_stages(enrolments).items()
        ]
        text = template.render(boxes=listed, stages=stages, instant=optional_instant)
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def show_metrics(_request: web.Request) -> web.Response:
        body, content_type = render_metrics(lambda: collect_metrics(boxes, router))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def show_health(_request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    app = web.Application(middlewares=[check])
    app.router.add_get("/", show_page)
    app.router.add_get("/metrics", show_metrics)
    app.router.add_get("/health", show_health)
    return app


def collect_metrics(boxes: Boxes, router: Router) -> Iterator[Any]:
    """Yield every metric of the relay."""
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

    yield CounterMetricFamily(
        "venuebox_relay_closed_heads",
        "connections closed because their first bytes were late, malformed or named no box",
        value=router.closed_heads,
    )
    measured = {name: _measure(boxes, name) for name in boxes.names}
    for kind, metrics in ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS)):
        for metric, meaning in metrics.items():
            family = kind(f"venuebox_relay_{metric}", meaning, labels=["name"])
            for name, values in measured.items():
                family.add_metric([name], values[metric])
            yield family


def _measure(boxes: Boxes, name: str) -> dict[str, int]:
    traffic = boxes.traffic[name]
    return {
        "box_connected": int(boxes.connection(name) is not None),
        "open_connections": traffic.open,
        "backup_bytes": used_bytes(boxes.enrolments.backups / name),
        **{counter: getattr(traffic, counter) for counter in _COUNTERS},
    }
