"""`GET /health`, `GET /ready` and `GET /metrics`.

For watchdogs, proxies and `venuebox doctor`. `/health` and `/ready` tell no version, path or
count (docs/security.md, S29). Only requests and commits are counted as they happen; `/metrics`
reads the rest when asked.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from hmac import compare_digest
from pathlib import Path
from typing import Any

from aiohttp import web

from appliance.backup.catalogue import read_record
from appliance.box import Box
from appliance.clock_records import find_heartbeat, write_heartbeat
from appliance.core.errors import NotFound, Unavailable
from appliance.doctor.check import Counts, ScanTotals, count_for_metrics
from appliance.environment import Environment
from appliance.http.request import answer
from appliance.jobs.watchdog import Lateness
from web.https_policy import SECURE
from web.middleware import REQUESTS
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
        total = request.app[REQUESTS]["total"]
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
