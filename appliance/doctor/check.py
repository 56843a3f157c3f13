"""The context and results of the checks of `venuebox doctor`, and sentences about alerts."""

import http.client
import os
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Literal, cast

import apsw

from appliance.alerts import Alert, list_alerts
from appliance.clock import Clock, ZoneDatabase, format_instant, kernel_is_synchronised
from appliance.core.data_directory import ENVIRONMENTS, DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.i18n import Language, isolate
from appliance.core.network import has_way_out
from appliance.core.settings import Settings
from appliance.core.tokens import EnvironmentName
from appliance.database.connection import Reader, is_unopenable, open_connection
from appliance.database.migrate import newest_schema

SCHEMA = "PRAGMA user_version"  # a database's schema version


_HEALTH_DEADLINE = 2.0
# The nginx directives that tell the box the requested host, the client's address and the scheme.
NGINX = (
    "proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; "
    "proxy_set_header X-Forwarded-Proto $scheme;"
)
Status = Literal["ok", "warn", "fail"]
_RANK = ("ok", "warn", "fail")

_TABLE = tomllib.loads(
    resources.files("appliance.doctor").joinpath("findings.toml").read_text("utf-8")
)
# Alert messages by alert name.
MESSAGES: Mapping[str, str] = _TABLE.pop("alerts")
FINDINGS: Mapping[str, Mapping[str, str]] = _TABLE


@dataclass(frozen=True, slots=True)
class Sentence:
    """An English message id and the values of its `%(name)s` placeholders.

    If a value is a tuple of sentences or a list of strings, its members are joined into one text.
    If `english` is set, it replaces the message in English.
    """

    message: str
    values: Mapping[str, object] = field(default_factory=dict)
    english: str = ""

    def text(self, language: Language) -> str:
        """Translate the sentence.

        In Arabic, wraps the values in Unicode isolates, because most are in Latin script.
        """
        if self.english and language.code == "en":
            return self.english
        filled = {name: _shown(value, language) for name, value in self.values.items()}
        return language.gettext(self.message, **filled)


def _shown(value: object, language: Language) -> str | None:
    if isinstance(value, tuple):
        texts = dict.fromkeys(sentence.text(language) for sentence in value)
        return language.gettext("; ").join(texts)
    if isinstance(value, list):
        return language.list(_shown(item, language) or "" for item in value)
    text = str(value)
    return isolate(text) if text and language.direction == "rtl" else text


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check. `remedy` is None if there is nothing to do."""

    status: Status
    finding: Sentence
    remedy: Sentence | None = None
    name: str = ""

    @classmethod
    def of(cls, finding: str, status: Status | None = None, /, **values: object) -> "Check":
        """Return the result for a finding in findings.toml. `values` fill its placeholders.

        Pass `status` only for a finding that has none in the table.
        """
        row = FINDINGS[finding]
        status = status or cast("Status", row.get("status", "ok"))
        filled: dict[str, object] = {**row, **values}
        remedy = None if status == "ok" else Sentence(row["remedy"], filled)
        return cls(status, Sentence(row["finding"], filled), remedy)


def at_least(found: int, wanted: int, least: int, finding: str, /, **values: object) -> Check:
    """Return a failure if `found` is below `least`, a warning if below `wanted`, otherwise ok."""
    status: Status = "ok" if found >= wanted else "fail" if found < least else "warn"
    return Check.of(finding, status, **values)


def utc(at: int) -> str:
    """Format ms since 1970 as `2026-11-21 19:05 UTC`."""
    return f"{format_instant(at)[:16].replace('T', ' ')} UTC"


def worst(checks: list[Check]) -> Status:
    """Return the worst status of the checks, or ok if there are none."""
    return max((check.status for check in checks), key=_RANK.index, default="ok")


class NotExamined(Exception):
    """Raised by a check that does not apply, or that cannot run.

    If it cannot run because of a fault, another check reports that fault.
    """


class Unopenable(NotExamined):
    """Raised if the database exists, but SQLite cannot create its `-wal` and `-shm` files."""


def ask_health(url: str) -> int | None:
    """Send a GET request. Return the HTTP status, or None if there is no response within 2 s."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_HEALTH_DEADLINE) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except (OSError, http.client.HTTPException):
        return None


@dataclass(frozen=True, slots=True)
class Machine:
    """System functions that the checks use. Tests replace them."""

    statvfs: Callable[[Path], os.statvfs_result] = os.statvfs
    device: Callable[[Path], int] = lambda path: path.stat().st_dev
    proc: Path = Path("/proc")
    is_synchronised: Callable[[], bool] = kernel_is_synchronised
    has_way_out: Callable[[], bool] = has_way_out
    ask: Callable[[str], int | None] = ask_health
    unit: Path = Path("/etc/systemd/system/venuebox.service")


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The box to check, which need not be running.

    If the settings cannot be read, `settings` is the error message. `online` permits the check that
    connects to the mail server. `outside` permits the check that connects to the public address.
    """

    directory: DataDirectory
    settings: Settings | str
    clock: Clock
    zones: ZoneDatabase
    online: bool = False
    outside: bool = False
    machine: Machine = Machine()

    @property
    def runs(self) -> bool:
        """Whether a box is running, i.e. a process has opened the wakeup pipe for reading."""
        try:
            os.close(os.open(self.directory.wakeup_pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    def known_settings(self) -> Settings:
        """Return the settings. Raises NotExamined if they cannot be read."""
        if isinstance(self.settings, str):
            raise NotExamined
        return self.settings

    @contextmanager
    def file(self, environment: EnvironmentName) -> Iterator[Reader]:
        """Open a read-only snapshot of an environment's database, whatever its schema version.

        Raises NotExamined if the database is missing, and Unopenable (a NotExamined) if SQLite
        cannot create the database's `-wal` and `-shm` files.
        """
        path = self.directory.database(environment)
        if not path.exists():
            raise NotExamined
        try:
            with closing(open_connection(path, writable=False)) as connection:
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
                yield Reader(connection, self.clock, self.zones)
        except apsw.Error as error:
            if is_unopenable(error):
                raise Unopenable from None
            raise

    @contextmanager
    def rows(self, environment: EnvironmentName) -> Iterator[Reader]:
        """Open a snapshot like `file`. Raises NotExamined if the schema is not current."""
        with self.file(environment) as reader:
            if reader.value(SCHEMA) != newest_schema():
                raise NotExamined
            yield reader

    def key(self) -> bytes:
        """Return the master key. Raises NotExamined if it cannot be used."""
        try:
            return self.directory.master_key()
        except OperatorError:
            raise NotExamined from None


_OF_STOPPED_BOX = (
    "endpoint_failing", "endpoint_blocked", "receiver_clock",
)  # fmt: skip


def conditions(context: CheckContext) -> Check:
    """Check that no alert is active.

    If the box is not running, check only alerts about endpoints and about another box.
    """
    found: list[Alert] = []
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            found += list_alerts(reader)
    if not context.runs:
        found = [alert for alert in found if alert.name in _OF_STOPPED_BOX]
    if not found:
        return Check.of("conditions")
    is_failing = any(alert.name == "unwritten_outcomes" for alert in found)
    noted = tuple(describe(alert, detailed=True) for alert in found)
    return Check.of("conditions_active", "fail" if is_failing else "warn", noted=noted)


def describe(alert: Alert, *, detailed: bool = False) -> Sentence:
    """Return the alert as a sentence.

    If `detailed` is true, the alert's stored detail, which is for operators, replaces a message
    without placeholders in English.
    """
    message = MESSAGES.get(alert.name, "%(detail)s")
    values = {"detail": alert.detail.rstrip("."), "subject": alert.subject}
    return Sentence(message, values, values["detail"] if detailed and "%(" not in message else "")
