"""`GET /health`, `GET /ready`, `GET /metrics`, and alerts about misconfigured reverse proxies.

`/health` and `/ready` are for watchdogs, proxies and `venuebox doctor`. They return no version,
path or count (docs/security.md, S29).
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from hmac import compare_digest
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from appliance.alerts import Alert, drop_alert, drop_alerts, put_alert
from appliance.backup.catalogue import read_record
from appliance.box import Box
from appliance.clock_records import find_heartbeat, write_heartbeat
from appliance.core.errors import NotFound, Unavailable
from appliance.core.network import is_public
from appliance.doctor.check import Counts, ScanTotals, count_for_metrics
from appliance.environment import Environment
from appliance.http.request import answer, is_loopback, is_trusted, networks_of
from appliance.jobs.watchdog import Lateness
from web.middleware import REQUESTS, SECURE, requested_name
from web.portal.guard import find_living_session

DEADLINE = 2.0
_FRESH_SECONDS = 1.0
_LEAST_ROOM = 1 << 20  # bytes: with less free space the next commits fail


def free_bytes(folder: Path) -> int:
    """Return the free space on the volume of `folder`, in bytes."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class Health:
    """Checks that both databases can be read and written, at most once a second."""

    def __init__(
        self, box: Box, free: Callable[[Path], int] = free_bytes, deadline: float = DEADLINE
    ) -> None:
        """`free` returns the bytes free on a volume; `deadline` limits the whole check (s)."""
        self._box = box
        self._free = free
        self._deadline = deadline
        self._running: asyncio.Task[None] | None = None
        self._judged_at: float | None = None
        self._good = False
        self._serving = False

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """Report ready; enter after all other start-up, leave before the shutdown."""
        self._serving = True
        yield
        self._serving = False
        if self._running is not None:
            await asyncio.wait({self._running}, timeout=self._deadline)

    async def show_health(self, _request: web.Request) -> web.Response:
        """`GET /health`: 200, or 503 when the disk is full, slow or broken."""
        if not await self._is_good():
            raise Unavailable
        return answer({"status": "ok"})

    async def show_ready(self, _request: web.Request) -> web.Response:
        """`GET /ready`: like `/health`, and 503 while the box is starting or stopping."""
        if not self._serving or not await self._is_good():
            raise Unavailable
        return answer({"status": "ok"})

    async def _is_good(self) -> bool:
        if any(environment.database.is_full for environment in self._box.environments):
            return False  # bookings already fail, whatever the last check showed
        now = self._box.clock.monotonic()
        if self._judged_at is not None and now - self._judged_at < _FRESH_SECONDS:
            return self._good
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._prove())
        # While the disk hangs there is one check, not one for each request.
        await asyncio.wait({self._running}, timeout=self._deadline)
        self._good = self._running.done() and self._running.exception() is None
        self._judged_at = self._box.clock.monotonic()
        return self._good

    async def _prove(self) -> None:
        await asyncio.gather(*(self._prove_one(e) for e in self._box.environments))

    async def _prove_one(self, environment: Environment) -> None:
        database = environment.database
        if self._free(database.path.parent) < _LEAST_ROOM:
            raise Unavailable
        await database.write(write_heartbeat)
        if await database.read(find_heartbeat) is None:
            raise Unavailable


class Metrics:
    """The metrics page, built for each request."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._lateness = Lateness()
        self._tallies = {each.name: ScanTotals() for each in box.environments}

    async def show(self, request: web.Request) -> web.Response:
        """`GET /metrics`; 404 except for the owner, the token and this machine."""
        if not self._may(request):
            raise NotFound
        counts: dict[str, Counts] = {
            each.name: await each.database.read(count_for_metrics, self._tallies[each.name])
            for each in self._box.environments
        }
        late = await self._lateness.measure()
        total = request.app[REQUESTS].total
        body, content_type = await asyncio.to_thread(_render, self._box, counts, total, late)
        return web.Response(body=body, headers={"Content-Type": content_type})

    def _may(self, request: web.Request) -> bool:
        if self._shows_the_token(request) or request.app[SECURE].is_this_machine(request):
            return True
        session = find_living_session(request, self._box.live)
        return session is not None and session.person.may("owner")

    def _shows_the_token(self, request: web.Request) -> bool:
        """Return whether the request has the token `server.metrics_token` (Prometheus)."""
        token = self._box.settings.server.metrics_token
        scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
        is_bearer = bool(token) and scheme.lower() == "bearer"
        return is_bearer and compare_digest(shown.encode("utf-8", "replace"), token.encode())


def collect(box: Box, counts: Mapping[str, Counts], requests: int, late: float) -> Iterator[Any]:
    """Yield every metric with its description: `requests` since the start, `late` in seconds."""
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

    yield CounterMetricFamily("venuebox_requests", "requests since the start", value=requests)
    yield GaugeMetricFamily(
        "venuebox_loop_late_seconds", "how late the event loop is just now", value=late
    )
    backed_up = read_record(box.live.database.path.parent).at
    if backed_up is not None:
        yield GaugeMetricFamily(
            "venuebox_backup_age_seconds",
            "age of the latest backup that was restored and found whole",
            value=(box.clock.now() - backed_up) / 1000,
        )
    commits = CounterMetricFamily(
        "venuebox_commits", "commits since the start", labels=["environment"]
    )
    gauges = {
        name: GaugeMetricFamily(f"venuebox_{name}", meaning, labels=["environment", *labels])
        for name, meaning, *labels in (
            ("writes_waiting", "actions that wait"),
            ("database_bytes", "size of the file"),
            ("wal_bytes", "size of the write-ahead log"),
            ("disk_full", "1: only the door is served"),
            ("deliveries", "webhook deliveries", "state"),
            ("scans", "decided scans", "result"),
            ("reservations", "reservations", "status"),
            ("conditions", "what is wrong just now"),
        )
    }
    for each in box.environments:
        database, counted, label = each.database, counts[each.name], [each.name]
        commits.add_metric(label, database.commits)
        gauges["writes_waiting"].add_metric(label, database.waiting)
        gauges["database_bytes"].add_metric(label, _size(database.path))
        wal = database.path.with_name(f"{database.path.name}-wal")
        gauges["wal_bytes"].add_metric(label, _size(wal))
        gauges["disk_full"].add_metric(label, database.is_full)
        gauges["conditions"].add_metric(label, counted.conditions)
        for name in ("deliveries", "scans", "reservations"):
            for kind, number in getattr(counted, name).items():
                gauges[name].add_metric([*label, kind], number)
    yield from (commits, *gauges.values())


def _render(
    box: Box, counts: Mapping[str, Counts], requests: int, late: float
) -> tuple[bytes, str]:
    """Return the page and its content type. Imports the library only when it is requested."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest  # noqa: PLC0415
    from prometheus_client.registry import Collector  # noqa: PLC0415

    class Page(Collector):
        def collect(self) -> Iterator[Any]:
            return collect(box, counts, requests, late)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Page())
    return generate_latest(registry), CONTENT_TYPE_LATEST


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


PROXY_UNKNOWN = "proxy_unknown"
PROXY_SILENT = "proxy_says_nothing"
_FORWARDED_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP")
_NGINX = (
    "proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; "
    "proxy_set_header X-Forwarded-Proto $scheme;"
)
_MOST = 5  # addresses that are reported
_MINUTE = 60.0


class ProxyWatch:
    """Detects misconfigured proxies; writes at most one alert per address and minute."""

    def __init__(self, box: Box) -> None:
        server = box.settings.server
        self._database = box.live.database
        self._clock = box.clock
        self._named = server.trusted_proxies
        self._proxies = networks_of(server.trusted_proxies)
        self._public = urlsplit(server.app_url).hostname if is_public(server.app_url) else None
        self._known: dict[tuple[str, str], tuple[bool, float]] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def attach(self, app: web.Application) -> None:
        """Inspect every request of `app` from now on."""
        app.on_response_prepare.append(self._look)
        app.cleanup_ctx.append(self._run)

    async def _run(self, _app: web.Application) -> AsyncIterator[None]:
        """Drop the alerts of the previous run: the settings may have changed."""
        with suppress(Unavailable):
            await self._database.write(drop_alerts, {PROXY_UNKNOWN, PROXY_SILENT})
        yield
        await asyncio.gather(*self._writing)

    async def _look(self, request: web.Request, _response: web.StreamResponse) -> None:
        """Record what the request's headers reveal about a proxy."""
        remote, headers = request.remote or "", request.headers
        is_public = self._public is not None and requested_name(request) == self._public
        # Browsers send Sec-Fetch-Mode only over https and from loopback.
        away = is_public if is_loopback(remote) else "Sec-Fetch-Mode" in headers
        is_handed_on = away and not request.secure
        if self._proxies and is_trusted(request, self._proxies):
            says_how = request.secure or "X-Forwarded-Proto" in headers
            if says_how and "X-Forwarded-For" in headers:
                self._note(PROXY_SILENT, remote, "", holds=False)
            elif is_public or is_handed_on:
                self._note(PROXY_SILENT, remote, _NGINX, holds=True)
        elif is_handed_on or any(name in headers for name in _FORWARDED_HEADERS):
            line = f"trusted_proxies = {json.dumps([*self._named, remote])}"
            # Internet clients may send such headers; the venue's proxies have private addresses.
            if _is_near(remote):
                self._note(PROXY_UNKNOWN, remote, line, holds=True)

    def _note(self, name: str, address: str, detail: str, *, holds: bool) -> None:
        key, now = (name, address), self._clock.monotonic()
        held, since = self._known.get(key, (False, -_MINUTE))
        is_new = key not in self._known
        if held == holds or now - since < _MINUTE or (is_new and len(self._known) >= _MOST):
            return
        self._known[key] = holds, now
        task = asyncio.ensure_future(self._write(key, detail, holds=holds))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, key: tuple[str, str], detail: str, *, holds: bool) -> None:
        try:
            if holds:
                condition = Alert(*key, self._database.clock.now(), detail)
                await self._database.write(put_alert, condition)
            else:
                await self._database.write(drop_alert, *key)
        except Unavailable:
            self._known[key] = not holds, self._known[key][1]


def _is_near(text: str) -> bool:
    """Return whether `text` is an address of this machine or of a private network."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (getattr(address, "ipv4_mapped", None) or address).is_global
