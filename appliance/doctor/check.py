"""The context and result types of `venuebox doctor` checks, and the counts for `/metrics`."""

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import apsw

from appliance.alerts import Alert, list_alerts
from appliance.clock import Clock, ZoneDatabase, format_instant, kernel_is_synchronised
from appliance.core.data_directory import ENVIRONMENTS, DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.i18n import Language, isolate
from appliance.core.i18n import mark as _
from appliance.core.network import has_way_out
from appliance.core.settings import Settings
from appliance.core.tokens import EnvironmentName
from appliance.database.connection import Reader, is_unopenable, open_connection
from appliance.database.migrate import list_migrations

SCHEMA = "PRAGMA user_version"  # a database's schema version


@dataclass(frozen=True, slots=True)
class Counts:
    """One database's counts of deliveries by state, scans by result and reservations by status."""

    deliveries: dict[str, int]
    scans: dict[str, int]
    reservations: dict[str, int]
    conditions: int


class ScanTotals:
    """A running count of scans by result. The scan log is append-only, so each scan counts once."""

    def __init__(self) -> None:
        # The last counted `seq`, and the counts up to it. A change replaces the whole tuple, so
        # other threads never see half of it.
        self._known: tuple[int, dict[str, int]] = (0, {})

    def take(self, reader: Reader) -> dict[str, int]:
        """Count the scans added since the last call. Returns the totals by result."""
        seq, known = self._known
        scans = dict(known)
        sql = "SELECT result, count(*), max(seq) FROM scan WHERE seq > :seq GROUP BY result"
        for result, count, last in reader.rows(sql, {"seq": seq}):
            scans[result] = scans.get(result, 0) + count
            seq = max(seq, last)
        self._known = seq, scans
        return scans


def count_for_metrics(reader: Reader, tally: ScanTotals) -> Counts:
    """Return the current counts. Pass the same `tally` to every call."""
    return Counts(
        deliveries=dict(reader.rows("SELECT state, count(*) FROM delivery GROUP BY state")),
        scans=tally.take(reader),
        reservations=dict(reader.rows("SELECT status, count(*) FROM reservation GROUP BY status")),
        conditions=int(reader.value("SELECT count(*) FROM condition")),
    )


HEALTH_DEADLINE = 2.0
# The nginx directives that pass on the client's address and whether the client used https.
NGINX = (
    "proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; "
    "proxy_set_header X-Forwarded-Proto $scheme;"
)
Status = Literal["ok", "warn", "fail"]
_RANK = ("ok", "warn", "fail")

# Remedies used by several checks.
ASK = _("Ask the person who installed the box: %(command)s")
SET = _("Set %(setting)s in the portal or in settings.toml.")
RESTART = _("Restart the box. If that changes nothing, check %(setting)s in settings.toml.")
RESTORE = _(
    "Tell the person who installed the box at once: the last backup has to be restored "
    "(%(command)s)."
)


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

        In Arabic, isolate the values, because most are in Latin script.
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


def ok(finding: str, /, **values: object) -> Check:
    """Return a check that passed."""
    return Check("ok", Sentence(finding, values))


def warn(finding: str, remedy: str, /, **values: object) -> Check:
    """Return a warning, i.e. the box works but needs attention."""
    return Check("warn", Sentence(finding, values), Sentence(remedy, values))


def fail(finding: str, remedy: str, /, **values: object) -> Check:
    """Return a failure, i.e. something does not work or will soon stop working."""
    return Check("fail", Sentence(finding, values), Sentence(remedy, values))


def at_least(
    found: int, wanted: int, least: int, finding: str, remedy: str, /, **values: object
) -> Check:
    """Return a failure if `found` is below `least`, a warning if below `wanted`, otherwise ok."""
    if found >= wanted:
        return ok(finding, **values)
    return (fail if found < least else warn)(finding, remedy, **values)


def utc(at: int) -> str:
    """Format ms since 1970 as `2026-11-21 19:05 UTC`."""
    return f"{format_instant(at)[:16].replace('T', ' ')} UTC"


def worst(checks: list[Check]) -> Status:
    """Return the worst status of the checks, or ok if there are none."""
    return max((check.status for check in checks), key=_RANK.index, default="ok")


class NotExamined(Exception):
    """Raised by a check that does not apply, or that a fault prevents.

    Another check reports this fault.
    """


class Unopenable(NotExamined):
    """Raised if the database exists, but SQLite cannot create its `-wal` and `-shm` files."""


def ask_health(url: str) -> int | None:
    """Send a GET request. Return the HTTP status, or None if there is no response within 2 s."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=HEALTH_DEADLINE) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return None


@dataclass(frozen=True, slots=True)
class Machine:
    """System functions that the checks use. Tests replace them."""

    statvfs: Callable[[Path], os.statvfs_result] = os.statvfs
    device: Callable[[Path], int] = lambda path: path.stat().st_dev
    proc: Path = Path("/proc")
    is_synchronised: Callable[[], bool | None] = kernel_is_synchronised
    has_way_out: Callable[[], bool] = has_way_out
    ask: Callable[[str], int | None] = ask_health


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
        """Open a read-only snapshot of an environment's database with any schema version.

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
            if reader.value(SCHEMA) != list_migrations()[-1][0]:
                raise NotExamined
            yield reader

    def key(self) -> bytes:
        """Return the master key. Raises NotExamined if it cannot be used."""
        try:
            return self.directory.master_key()
        except OperatorError:
            raise NotExamined from None


# Alert messages by alert name.
MESSAGES = {
    "box_offline": _("the box has no internet, webhooks wait"),
    "clock_held": _("the clock cannot be trusted, webhooks wait"),
    "clock_unconfirmed": _("webhooks are sent with a time that is not confirmed"),
    "clock_leapt": _(
        "the clock was set far ahead or back and nothing confirms it, so nothing expires: if its "
        "date is right, the owner confirms it in the portal"
    ),
    "unwritten_outcomes": _("results of deliveries cannot be written"),
    "endpoint_failing": _("a webhook endpoint does not answer"),
    "endpoint_blocked": _("the address of a webhook endpoint is not allowed"),
    "receiver_clock": _("a partner's clock differs from the box's"),
    "endpoint_switched_off": _("an API key deactivated a webhook endpoint of another key"),
    "no_backup": _("a backup could not be made"),
    "backup_target": _("the copies of the backups elsewhere are not safe"),
    "database_damaged": _("a database is damaged"),
    "recovery_key_replaced": _(
        "a new recovery kit must be printed, because the key of the old one was lost"
    ),
    "another_box_serves": _(
        "another box took this one's place, so this box does not serve: leave it off"
    ),
    "mail_settings": _("no email is sent before the mail settings are corrected"),
    "mail_unreachable": _("emails wait: the mail server does not answer"),
    "acme_dns": _(
        "the authority found no usable DNS record of %(subject)s, so it issued no certificate "
        "(%(detail)s)"
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
        "the authority does not accept the account that ordered a certificate for %(subject)s "
        "(%(detail)s)"
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
    "reader_trouble": _("a scanner does not work: %(detail)s"),
    "address_unreachable": _(
        "guests and partners do not reach the box at %(subject)s: the portal shows the reason "
        "under “The box”"
    ),
    "proxy_unknown": _(
        "requests come from a proxy or tunnel at %(subject)s that is not configured, so everyone "
        "behind it counts as one caller: if it is yours, write %(detail)s under [server] in "
        "settings.toml and restart the box"
    ),
    "proxy_says_nothing": _(
        "the proxy at %(subject)s is configured, but does not pass on the client’s address and "
        "whether it used https: it has to send X-Forwarded-For and X-Forwarded-Proto (nginx: "
        "%(detail)s)"
    ),
    "relay_away": _(
        "the relay %(detail)s does not answer, so guests and partners outside cannot reach the "
        "box: the box keeps trying"
    ),
    "relay_revoked": _(
        "the relay %(detail)s refuses the box, so guests and partners outside cannot reach it: ask "
        "for a new code and run venuebox relay join"
    ),
    "relay_other_key": _(
        "another machine answers at the address of the relay %(detail)s, so the box does not "
        "connect: ask who runs the relay whether its key was changed"
    ),
    "relay_replaced": _(
        "another box is connected to the relay %(detail)s with the key of this one: stop the box "
        "that is a copy"
    ),
    "relay_unusable": _("the box does not connect to its relay: %(detail)s"),
}
_OF_STOPPED_BOX = (
    "endpoint_failing", "endpoint_blocked", "receiver_clock", "endpoint_switched_off",
    "another_box_serves",
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
        return ok(_("The box reports no problem."))
    is_failing = any(alert.name == "unwritten_outcomes" for alert in found)
    remedy = _(
        "See the findings about the clock, the internet and mail, and the endpoints in the portal."
    )
    noted = tuple(map(describe, found))
    return (fail if is_failing else warn)(_("The box reports: %(noted)s."), remedy, noted=noted)


def describe(alert: Alert) -> Sentence:
    """Return the alert as a sentence.

    In English, an alert whose message has no placeholders is shown as its stored detail.
    """
    message = MESSAGES.get(alert.name, "%(detail)s")
    values = {"detail": alert.detail.rstrip("."), "subject": alert.subject}
    return Sentence(message, values, "" if "%(" in message else values["detail"])
