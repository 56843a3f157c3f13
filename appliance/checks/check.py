"""The context and results of the checks of `venuebox doctor`, and what the running box observes.

An observation is a fact that a check cannot find out again, such as an unresponsive relay. It is a
row from when the fault begins until it ends or the box stops.
"""

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import apsw

from appliance.clock import Clock, ZoneDatabase, format_instant, kernel_is_synchronised
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.i18n import Language, isolate
from appliance.core.i18n import mark as _
from appliance.core.network import has_way_out
from appliance.core.settings import Settings
from appliance.core.tokens import EnvironmentName
from appliance.database.connection import Reader, Transaction, is_unopenable, open_connection
from appliance.database.migrate import newest_schema
from appliance.tls.acme import State

# What the running box observes.
DAMAGED = "database_damaged"
READER_TROUBLE = "reader_trouble"
RELAY_AWAY, RELAY_UNUSABLE = "relay_away", "relay_unusable"
SKEW_WARNING_S = 60  # receivers refuse signatures from 300 s on
SCHEMA = "PRAGMA user_version"  # a database's schema version
_HEALTH_DEADLINE = 2.0
# The nginx directives that tell the box the requested host, the client's address and the scheme.
NGINX = (
    "proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; "
    "proxy_set_header X-Forwarded-Proto $scheme;"
)
Status = Literal["ok", "warn", "fail"]
_RANK = ("ok", "warn", "fail")

# Sentences about observations and failed ACME attempts, which fill %(subject)s and %(detail)s.
MESSAGES: Mapping[str, str] = {
    "acme_dns": _(
        "the authority found no usable DNS record of %(subject)s, so it issued no "
        "certificate (%(detail)s)"
    ),
    "acme_unreached": _(
        "the authority did not reach this box under the name %(subject)s, so it issued no "
        "certificate (%(detail)s)"
    ),
    "acme_caa": _(
        "a CAA record forbids the authority to issue a certificate for %(subject)s (%(detail)s)"
    ),
    "acme_rate_limited": _(
        "the authority accepts no more orders for %(subject)s at the moment (%(detail)s)"
    ),
    "acme_account": _(
        "the authority does not accept the account that ordered a certificate for "
        "%(subject)s (%(detail)s)"
    ),
    "acme_refused": _("the authority issued no certificate for %(subject)s (%(detail)s)"),
    "acme_no_answer": _(
        "the authority that issues the certificate for %(subject)s does not answer (%(detail)s)"
    ),
    "acme_dns_hook": _(
        "the program acme.dns_hook failed while a certificate for %(subject)s was ordered "
        "(%(detail)s)"
    ),
    "acme_unusable": _("the new certificate for %(subject)s cannot be used (%(detail)s)"),
    "relay_away": _(
        "the relay %(detail)s does not answer, so guests and partners outside cannot reach"
        " the box: the box keeps trying"
    ),
    "relay_revoked": _(
        "the relay %(detail)s does not accept the key of this box, so guests and partners "
        "outside cannot reach it: send the key, which the portal shows under “How guests "
        "and partners reach you”, to whoever runs the relay"
    ),
    "relay_other_key": _(
        "another machine answers at the address of the relay %(detail)s, so the box does "
        "not connect: ask who runs the relay whether its key was changed"
    ),
    "relay_taken": _(
        "the relay %(detail)s does not give the box its name, so guests and partners "
        "outside cannot reach it: stop a box that is a copy of this one, or ask whoever "
        "runs the relay for a new line"
    ),
    "relay_unusable": _("the box does not connect to its relay: %(detail)s"),
}


@dataclass(frozen=True, slots=True)
class Observation:
    """A fault that lasts since `since` (ms since 1970). `subject` may be an address."""

    name: str
    subject: str
    since: int
    detail: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """An English message id and the values of its `%(name)s` placeholders.

    If a value is a tuple of sentences or a list of strings, its members are joined into one text.
    """

    message: str
    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, language: Language) -> str:
        """Translate the sentence.

        In Arabic, wraps the values in Unicode isolates, because most are in Latin script.
        """
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
    """The result of a check. `remedy` is None if there is nothing to do.

    `since` is when the fault began, in ms since 1970, or None if that is not known.
    """

    status: Status
    finding: Sentence
    remedy: Sentence | None = None
    name: str = ""
    since: int | None = None

    def lasting(self, since: int | None) -> "Check":
        """Return the result of a fault that began at `since`."""
        return replace(self, since=since)

    @classmethod
    def of(cls, status: Status, finding: str, remedy: str, /, **values: object) -> "Check":
        """Return a result. `values` fill the placeholders of the English sentences."""
        is_ok = status == "ok"
        return cls(status, Sentence(finding, values), None if is_ok else Sentence(remedy, values))

    @classmethod
    def ok(cls, finding: str, /, **values: object) -> "Check":
        """Return the result of a check without problems."""
        return cls("ok", Sentence(finding, values))

    @classmethod
    def warn(cls, finding: str, remedy: str, /, **values: object) -> "Check":
        """Return a warning."""
        return cls.of("warn", finding, remedy, **values)

    @classmethod
    def fail(cls, finding: str, remedy: str, /, **values: object) -> "Check":
        """Return a failure."""
        return cls.of("fail", finding, remedy, **values)


def at_least(
    found: int, wanted: int, least: int, finding: str, remedy: str, /, **values: object
) -> Check:
    """Return a failure if `found` is below `least`, a warning if below `wanted`, otherwise ok."""
    status: Status = "ok" if found >= wanted else "fail" if found < least else "warn"
    return Check.of(status, finding, remedy, **values)


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
    is_synchronised: Callable[[], bool] = kernel_is_synchronised
    has_way_out: Callable[[], bool] = has_way_out
    ask: Callable[[str], int | None] = ask_health
    unit: Path = Path("/etc/systemd/system/venuebox.service")


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The box to check, which need not be running.

    If the settings cannot be read, `settings` is the error message. `outside` permits the check
    that connects to the public address, or is its latest result. Without `deep`, the databases are
    not read from end to end.
    """

    directory: DataDirectory
    settings: Settings | str
    clock: Clock
    zones: ZoneDatabase
    outside: bool | Check = False
    deep: bool = True
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
        """Open a read-only snapshot of a database with any schema version.

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


def describe_seen(seen: Observation) -> Sentence:
    """Return the sentence about an observation of the relay."""
    values = {"subject": seen.subject, "detail": seen.detail.rstrip(".")}
    return Sentence(MESSAGES[seen.name], values)


def describe_acme(state: State) -> Sentence:
    """Return why the latest attempt to obtain a certificate failed. `state.reason` is not empty."""
    values = {"subject": state.subject[0], "detail": state.detail.rstrip(".")}
    return Sentence(MESSAGES[f"acme_{state.reason}"], values)


def list_observations(reader: Reader, prefix: str = "") -> list[Observation]:
    """Return the observations whose names begin with `prefix`, oldest first."""
    sql = """SELECT name, subject, since, detail FROM observation
             WHERE name LIKE :prefix || '%' ORDER BY since, name, subject"""
    return [Observation(*row) for row in reader.rows(sql, {"prefix": prefix})]


def observe(tx: Transaction, name: str, detail: str, subject: str = "") -> None:
    """Store a fault that begins now, or delete it if `detail` is empty. `since` is kept."""
    values = {"name": name, "subject": subject, "detail": detail, "now": tx.now}
    tx.execute(
        """INSERT INTO observation (name, subject, since, detail)
           SELECT :name, :subject, :now, :detail WHERE :detail <> ''
           ON CONFLICT (name, subject) DO UPDATE SET detail = :detail""",
        values,
    )
    tx.execute(
        """DELETE FROM observation
           WHERE name = :name AND subject = :subject AND :detail = ''""",
        values,
    )


def forget_observations(tx: Transaction) -> None:
    """Delete the observations of the process, except those of a damaged database."""
    tx.execute("DELETE FROM observation WHERE name <> :damaged", {"damaged": DAMAGED})
