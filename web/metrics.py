"""`GET /metrics`: numbers for Prometheus, for the owner or this machine (reliability.md, S29).

Nothing is counted while the box works but its requests: who asks has the rows counted.
"""

from collections.abc import Iterator
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from appliance.backup.shelf import read_record
from appliance.box import Box
from appliance.environment import Environment
from appliance.errors import NotFound
from appliance.store.metrics import Counts, count_for_metrics
from appliance.upkeep.watchdog import Lateness
from web.middleware import REQUESTS, Handler
from web.portal.guard import find_living_session
from web.portal.outbox import is_this_machine


class Metrics:
    """One page of numbers, made when it is asked for."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._lateness = Lateness()

    async def show(self, request: web.Request) -> web.Response:
        """`GET /metrics`: for whoever is neither the owner nor on this machine, no such page."""
        if not self._may(request):
            raise NotFound
        counts: dict[str, Counts] = {
            each.name: await each.database.read(count_for_metrics)
            for each in self._box.environments
        }
        late = await self._lateness.measure()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Page(self._box, counts, request.app[REQUESTS].total, late))
        return web.Response(
            body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    def routes(self) -> tuple[tuple[str, str, Handler], ...]:
        """What the application adds."""
        return (("GET", "/metrics", self.show),)

    def _may(self, request: web.Request) -> bool:
        if is_this_machine(request):
            return True
        session = find_living_session(request, self._box.live)
        return session is not None and session.person.may("owner")


class _Page(Collector):
    def __init__(self, box: Box, counts: dict[str, Counts], requests: int, late: float) -> None:
        self._box = box
        self._counts = counts
        self._requests = requests
        self._late = late

    def collect(self) -> Iterator[Metric]:
        """Every number, with its meaning."""
        yield CounterMetricFamily(
            "venuebox_requests", "requests since the start", value=self._requests
        )
        yield GaugeMetricFamily(
            "venuebox_loop_late_seconds", "how late the event loop is just now", value=self._late
        )
        record = read_record(self._root)
        if record.at is not None:
            yield GaugeMetricFamily(
                "venuebox_backup_age_seconds",
                "age of the latest backup that was restored and found whole",
                value=(self._box.clock.now() - record.at) / 1000,
            )
        yield from self._of_databases()
        yield from self._of_rows()

    @property
    def _root(self) -> Path:
        return self._box.live.database.path.parent

    def _of_databases(self) -> Iterator[Metric]:
        names = ["environment"]
        commits = CounterMetricFamily("venuebox_commits", "commits since the start", labels=names)
        waiting = GaugeMetricFamily("venuebox_writes_waiting", "actions that wait", labels=names)
        size = GaugeMetricFamily("venuebox_database_bytes", "size of the file", labels=names)
        wal = GaugeMetricFamily("venuebox_wal_bytes", "size of the write-ahead log", labels=names)
        full = GaugeMetricFamily("venuebox_disk_full", "1: only the door is served", labels=names)
        for each in self._box.environments:
            database, label = each.database, [each.name]
            commits.add_metric(label, database.commits)
            waiting.add_metric(label, database.waiting)
            size.add_metric(label, _size(database.path))
            wal.add_metric(label, _size(database.path.with_name(f"{database.path.name}-wal")))
            full.add_metric(label, database.is_full)
        yield from (commits, waiting, size, wal, full)

    def _of_rows(self) -> Iterator[Metric]:
        deliveries = _by("venuebox_deliveries", "webhook deliveries", "state")
        scans = _by("venuebox_scans", "decided scans", "result")
        reservations = _by("venuebox_reservations", "reservations", "status")
        conditions = _by("venuebox_conditions", "what is wrong just now")
        for each in self._box.environments:
            self._add(each, deliveries, self._counts[each.name].deliveries)
            self._add(each, scans, self._counts[each.name].scans)
            self._add(each, reservations, self._counts[each.name].reservations)
            conditions.add_metric([each.name], self._counts[each.name].conditions)
        yield from (deliveries, scans, reservations, conditions)

    @staticmethod
    def _add(each: Environment, family: GaugeMetricFamily, counted: dict[str, int]) -> None:
        for kind, number in counted.items():
            family.add_metric([each.name, kind], number)


def _by(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, labels=["environment", *labels])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
