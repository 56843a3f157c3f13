"""`GET /health` and `GET /metrics`, and the checks of `venuebox doctor` in the running box.

`/health` is for watchdogs, proxies and `venuebox doctor`. It returns no version, path or count
(docs/security.md, S29).
"""

import asyncio
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path

from aiohttp import web

from appliance.backup.catalogue import read_record
from appliance.box import Box, find_heartbeat, write_heartbeat
from appliance.checks.check import (
    Check,
    CheckContext,
    Machine,
)
from appliance.checks.network import OutsideWatch
from appliance.core.errors import NotFound, OperatorError, Unavailable
from appliance.core.i18n import load_languages
from appliance.core.settings import Settings, read_settings
from appliance.database.connection import Reader
from appliance.environment import Environment
from appliance.http.request import answer
from appliance.reservations.email_queue import find_venue_language
from appliance.scheduler import Job
from appliance.venue.model import get_venue
from web.middleware import REQUESTS, SECURE
from web.portal.guard import find_living_session

_DEADLINE_SECONDS = 2.0
_FRESH_SECONDS = 1.0  # how long a result is reused
_FREE_BYTES_MIN = 1 << 20  # with less free space, the next commits may fail


class Health:
    """Checks, at most once a second, that both databases can be read and written."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._check: asyncio.Future[list[None]] | None = None
        self._checked_at = float("-inf")
        self._is_good = False

    async def close(self, _app: web.Application) -> None:
        """Wait for the check in progress, if any."""
        if self._check is not None:
            await asyncio.wait({self._check}, timeout=_DEADLINE_SECONDS)

    async def show_health(self, _request: web.Request) -> web.Response:
        """`GET /health`: return 200, or 503 if the disk is full, slow or broken.

        `GET /ready` is the same.
        """
        if not await self._is_healthy():
            raise Unavailable
        return answer({"status": "ok"})

    async def _is_healthy(self) -> bool:
        if any(environment.database.is_full for environment in self._box.environments):
            return False  # bookings already fail, even if the last check succeeded
        clock = self._box.clock
        if clock.monotonic() - self._checked_at < _FRESH_SECONDS:
            return self._is_good
        if self._check is None or self._check.done():
            self._check = asyncio.gather(*map(self._check_database, self._box.environments))
        # If the disk does not respond, all requests wait for the same check.
        await asyncio.wait({self._check}, timeout=_DEADLINE_SECONDS)
        self._is_good = self._check.done() and self._check.exception() is None
        self._checked_at = clock.monotonic()
        return self._is_good

    async def _check_database(self, environment: Environment) -> None:
        database = environment.database
        if shutil.disk_usage(database.path.parent).free < _FREE_BYTES_MIN:
            raise Unavailable
        is_believed = self._box.clock.is_believed()
        await database.write(write_heartbeat, is_believed=is_believed)
        if await database.read(find_heartbeat) is None:
            raise Unavailable


log = logging.getLogger(__name__)

# How many seconds a page waits for the checks. If they take longer, their results appear after the
# page is reloaded.
_PAGE_SECONDS = 8.0
_EXAMINE_EVERY_MS = 5 * 60_000
_CURRENT_MS = 60_000

Findings = tuple[list[Check], int]
"""The results of the checks and the time when they ran (ms since 1970)."""


class Examiner:
    """Runs the checks of `venuebox doctor` every 5 minutes, and logs each change.

    The portal and `/metrics` show the latest results.
    """

    def __init__(self, box: Box, outside: OutsideWatch) -> None:
        self._box, self._outside = box, outside
        self._task: asyncio.Task[Findings] | None = None
        self.latest: Findings | None = None
        self._lasting: list[Check] = []  # those that failed twice in a row
        self._told: set[str] = set()  # those of them that the venue was emailed about
        self.job = Job("checks", box.live.database, self._next_due, self._look_again)

    @property
    def checks(self) -> list[Check]:
        """The latest results, or an empty list before the first ones."""
        return self.latest[0] if self.latest is not None else []

    async def look(self, *, again: bool) -> Findings | None:
        """Return results of the last minute, or new ones, or None if they take longer than 8 s.

        If `again` is true, run the checks in any case, and read the databases from end to end.
        """
        now, latest = self._box.clock.now(), self.latest
        if latest is not None and not again and 0 <= now - latest[1] < _CURRENT_MS:
            return latest
        if again and self._task is not None:  # a running check may have started before the change
            await asyncio.wait({self._task}, timeout=_PAGE_SECONDS)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._examine(deep=again))
        done, _ = await asyncio.wait({self._task}, timeout=_PAGE_SECONDS)
        return self.latest if done else None

    async def close(self, _app: web.Application) -> None:
        """Wait up to 8 s for running checks, because they use the databases."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_PAGE_SECONDS)

    def _next_due(self, reader: Reader) -> int:
        if self.latest is None or self.latest[1] > reader.now:
            return 0
        return self.latest[1] + _EXAMINE_EVERY_MS

    async def _look_again(self) -> None:
        await self.look(again=False)
        await self._notify_venue()

    async def _notify_venue(self) -> None:
        """Email the venue about checks that failed twice in a row, once until they succeed."""
        self._told &= {check.name for check in self._lasting}
        new = [check for check in self._lasting if check.name not in self._told]
        venue, code = self._box.live.database.peek(
            lambda reader: (get_venue(reader), find_venue_language(reader))
        )
        if not new or venue.house_email is None or not venue.hears_checks:
            return
        from appliance.email.smtp import send_once  # noqa: PLC0415 - loads the mail client

        language, name = load_languages().get(code), " ".join(venue.name.split())
        subject = language.gettext("The box of %(venue)s needs help", venue=name)
        lines = [line for check in new for line in (check.finding, check.remedy) if line]
        texts = [line.text(language) for line in lines]
        text = "\n\n".join(f"{text[:1].upper()}{text[1:]}." for text in texts)
        outcome = await send_once(self._box.settings.mail, venue.house_email, name, subject, text)
        if outcome.result == "accepted":
            self._told |= {check.name for check in new}

    async def _examine(self, *, deep: bool) -> Findings:
        before = {check.name: check.status for check in self.checks}
        outside = self._outside.latest if self._outside.url else None
        found = await asyncio.to_thread(_run_checks, self._box, outside, deep=deep)
        self.latest = found, self._box.clock.now()
        self._lasting = [
            check for check in found if check.status == before.get(check.name) == "fail"
        ]
        for check in found:
            if check.status != before.get(check.name, "ok"):
                level = logging.INFO if check.status == "ok" else logging.WARNING
                log.log(level, "checks: %s is %s", check.name, check.status)
        return self.latest


EXAMINER = web.AppKey("examiner", Examiner)
OUTSIDE = web.AppKey("outside", OutsideWatch)


def _run_checks(box: Box, outside: Check | None, *, deep: bool) -> list[Check]:
    # Imported here because it loads the mail client, which would delay the start of the box.
    from appliance.checks.examine import examine  # noqa: PLC0415

    directory = box.directory
    settings: Settings | str = box.settings
    try:
        read_settings(directory.settings_file, {})
    except OperatorError as failure:  # the box would not start again with this file
        settings = str(failure)
    machine = Machine(is_synchronised=box.clock.synchronised)
    clock = box.clock.machine
    return examine(
        CheckContext(
            directory, settings, clock, box.zones, outside=outside or False, deep=deep,
            machine=machine,
        )
    )  # fmt: skip


# One database's counts, by metric name. Some metrics have a count for each value of a label.
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Counts = Mapping[str, int | Mapping[str, int]]


def count_rows(reader: Reader) -> Counts:
    """Return the current counts."""
    return {
        name: dict(reader.rows(f"SELECT {label}, count(*) FROM {table} GROUP BY {label}"))  # noqa: S608
        for name, table, label in (
            ("deliveries", "delivery", "state"), ("scans", "scan_log", "result"),
            ("reservations", "reservation", "status"),
        )
    }  # fmt: skip


class Metrics:
    """Collects the metrics and serves them at `/metrics`."""

    def __init__(self, box: Box) -> None:
        self._box = box

    async def show(self, request: web.Request) -> web.Response:
        """`GET /metrics`: return the metrics for Prometheus.

        The caller must be signed in as an owner, send the metrics token, or be on this machine.
        Raises NotFound for other callers, and HttpsRequired if the token came over plain http.
        """
        if not self._is_allowed(request):
            raise NotFound
        counts: dict[str, Counts] = {
            each.name: await each.database.read(count_rows) for each in self._box.environments
        }
        metrics = collect(
            self._box, counts, request.app[REQUESTS].total, request.app[EXAMINER].checks
        )
        lines = await asyncio.to_thread(lambda: [line for each in metrics for line in each.lines()])
        body = "\n".join([*lines, ""])
        return web.Response(body=body, headers={"Content-Type": _CONTENT_TYPE})

    def _is_allowed(self, request: web.Request) -> bool:
        if self._has_token(request):
            request.app[SECURE].demand(request)
            return True
        if request.app[SECURE].is_this_machine(request):
            return True
        session = find_living_session(request, self._box.live)
        return session is not None and session.person.may("owner")

    def _has_token(self, request: web.Request) -> bool:
        """Return whether the request's bearer token is `server.metrics_token`."""
        expected = self._box.settings.server.metrics_token
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        is_bearer = bool(expected) and scheme.lower() == "bearer"
        return is_bearer and compare_digest(token.encode("utf-8", "replace"), expected.encode())


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of Prometheus's text format, with a value for each combination of label values."""

    name: str
    kind: str  # counter or gauge
    meaning: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], float]

    def lines(self) -> Iterator[str]:
        """Yield the lines. No label value contains a character that needs escaping."""
        yield f"# HELP {self.name} {self.meaning}"
        yield f"# TYPE {self.name} {self.kind}"
        for key, value in self.values.items():
            pairs = ",".join(f'{label}="{of}"' for label, of in zip(self.labels, key, strict=True))
            yield f"{self.name}{f'{{{pairs}}}' if pairs else ''} {float(value)}"


def collect(
    box: Box, counts: Mapping[str, Counts], requests: int, checks: Sequence[Check]
) -> Iterator[Metric]:
    """Yield every metric. `requests` counts the requests since the start."""
    meaning = "results of the checks of `venuebox doctor`: 0 ok, 1 warning, 2 failure"
    states: dict[tuple[str, ...], float] = {
        (check.name,): ("ok", "warn", "fail").index(check.status) for check in checks
    }
    yield Metric("venuebox_check", "gauge", meaning, ("check",), states)
    yield Metric("venuebox_requests_total", "counter", "requests since the start", (),
                 {(): requests})  # fmt: skip
    backed_up = read_record(box.live.database.path.parent).at
    if backed_up is not None:
        meaning = "age of the latest backup that was restored on trial"
        age = (box.clock.now() - backed_up) / 1000
        yield Metric("venuebox_backup_age_seconds", "gauge", meaning, (), {(): age})
    commits: dict[tuple[str, ...], float] = {
        (each.name,): each.database.commits for each in box.environments
    }
    meaning = "commits since the start"
    yield Metric("venuebox_commits_total", "counter", meaning, ("environment",), commits)
    found: dict[str, Counts] = {
        each.name: {
            "writes_waiting": each.database.waiting,
            "database_bytes": _size(each.database.path),
            "wal_bytes": _size(each.database.path.with_name(f"{each.database.path.name}-wal")),
            "disk_full": each.database.is_full,
            **counts[each.name],
        }
        for each in box.environments
    }
    for name, meaning, *labels in (
        ("writes_waiting", "queued write actions"),
        ("database_bytes", "size of the database file"),
        ("wal_bytes", "size of the write-ahead log"),
        ("disk_full", "1 if the disk is full and only the door can write"),
        ("deliveries", "webhook deliveries", "state"),
        ("scans", "decided scans", "result"),
        ("reservations", "reservations", "status"),
    ):
        values: dict[tuple[str, ...], float] = {}
        for environment, of in found.items():
            value = of.get(name, {})
            if isinstance(value, int):
                values[environment,] = value
            else:
                values |= {(environment, label): number for label, number in value.items()}
        yield Metric(f"venuebox_{name}", "gauge", meaning, ("environment", *labels), values)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
