"""What `GET /metrics` shows, in the words of Prometheus. Its library is read when first asked."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from appliance.backup.shelf import read_record
from appliance.box import Box
from appliance.environment import Environment
from appliance.store.metrics import Counts

CONTENT_TYPE = CONTENT_TYPE_LATEST


def render(box: Box, counts: dict[str, Counts], requests: int, late: float) -> bytes:
    """The page: `requests` since the start, `late` in seconds."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Page(box, counts, requests, late))
    return generate_latest(registry)


class Page(Collector):
    """The numbers of one moment."""

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
