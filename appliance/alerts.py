"""Alerts: current problems, stored as rows and shown by the portal and by `doctor`."""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import asdict, dataclass

from appliance.core.errors import ApiError, Unavailable, log_exception
from appliance.database.connection import Reader, Transaction
from appliance.database.database import Database


@dataclass(frozen=True, slots=True)
class Alert:
    """An active alert. `since` is in ms since 1970.

    `subject` is the id of the object concerned, such as an endpoint, or empty if there is none.
    """

    name: str
    subject: str
    since: int
    detail: str


def list_alerts(reader: Reader) -> list[Alert]:
    """Return the active alerts, oldest first."""
    sql = "SELECT name, subject, since, detail FROM condition ORDER BY since, name, subject"
    return [Alert(*row) for row in reader.rows(sql)]


def put_alert(tx: Transaction, alert: Alert) -> None:
    """Store an active alert. If it is already stored, keep its `since`."""
    sql = """INSERT INTO condition (name, subject, since, detail)
             VALUES (:name, :subject, :since, :detail)
             ON CONFLICT (name, subject) DO UPDATE SET detail = :detail"""
    tx.execute(sql, asdict(alert))


def set_alert(tx: Transaction, name: str, sentence: str, subject: str = "") -> None:
    """Store an alert that is active from now on, or delete it if `sentence` is empty."""
    if sentence:
        put_alert(tx, Alert(name, subject, tx.now, sentence))
    else:
        drop_alert(tx, name, subject)


def drop_alert(tx: Transaction, name: str, subject: str) -> None:
    """Delete one alert."""
    sql = "DELETE FROM condition WHERE name = :name AND subject = :subject"
    tx.execute(sql, {"name": name, "subject": subject})


def drop_alerts(tx: Transaction, names: Collection[str]) -> None:
    """Delete all alerts with these names, for every subject."""
    for name in names:
        tx.execute("DELETE FROM condition WHERE name = :name", {"name": name})


log = logging.getLogger(__name__)

OFFLINE = "box_offline"
UNWRITTEN = "unwritten_outcomes"
ENDPOINT_FAILING = "endpoint_failing"
ENDPOINT_BLOCKED = "endpoint_blocked"
RECEIVER_CLOCK = "receiver_clock"

SKEW_WARNING_S = 60

# Alerts about the running process, which are cleared when it ends.
_OF_THE_PROCESS = (OFFLINE, UNWRITTEN)
# Alerts about webhook endpoints.
_OF_ENDPOINTS = (ENDPOINT_FAILING, ENDPOINT_BLOCKED, RECEIVER_CLOCK)

_Key = tuple[str, str]


async def note_alert(database: Database, name: str, sentence: str) -> None:
    """Raise the alert `name` with the text `sentence`, or drop it if `sentence` is empty.

    If the write fails, the change is only logged.
    """
    alerts = await database.read(list_alerts)
    if not sentence and all(alert.name != name for alert in alerts):
        return  # nothing to write
    try:
        await database.write(set_alert, name, sentence)
    except ApiError:
        log.warning("alerts: a change to the alert %s was not stored. Its text: %s", name, sentence)


class Alerts:
    """The active alerts, in memory and in the database.

    Only changed alerts are written to the database. If the database is unavailable, the changes are
    kept and written together with the next change. After any other error, they remain in memory,
    but are not written again.
    """

    def __init__(self, database: Database, level: int = logging.WARNING) -> None:
        """`level` is the log level for newly raised alerts."""
        self._database = database
        self._level = level
        self._active: dict[_Key, Alert] = {}
        self._changed: dict[_Key, None] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Load the stored alerts, and clear the alerts about the previous process."""
        for alert in self._database.peek(list_alerts):
            key = (alert.name, alert.subject)
            self._active[key] = alert
            if alert.name in _OF_THE_PROCESS:
                self._clear(key)

    def begin(self, name: str, sentence: str, subject: str = "") -> None:
        """Raise an alert, unless it is already active.

        `sentence` describes the problem to the owner.
        """
        key = (name, subject)
        if key not in self._active:
            log.log(self._level, "alerts: %s", sentence)
            self._active[key] = Alert(name, subject, self._database.clock.now(), sentence)
            self._write_soon(key)

    def end(self, name: str, sentence: str, subject: str = "") -> None:
        """If the alert is active, clear it and log `sentence`."""
        if (name, subject) in self._active:
            log.info("alerts: %s", sentence)
            self._clear((name, subject))

    def keep_only(self, subjects: set[str]) -> None:
        """Clear the alerts about endpoints whose ids are not in `subjects`."""
        for key in list(self._active):
            if key[0] in _OF_ENDPOINTS and key[1] not in subjects:
                self._clear(key)

    async def close(self) -> None:
        """Clear the alerts about this process, and wait for the write to succeed or fail.

        Changes left from an earlier failed write are written only together with a new change.
        """
        for key in [key for key in self._active if key[0] in _OF_THE_PROCESS]:
            self._clear(key)
        if self._task is not None:
            await self._task

    def _clear(self, key: _Key) -> None:
        del self._active[key]
        self._write_soon(key)

    def _write_soon(self, key: _Key) -> None:
        self._changed[key] = None
        if self._task is None:
            self._task = asyncio.create_task(self._write(), name="alerts")

    async def _write(self) -> None:
        while self._changed:
            changes = {key: self._active.get(key) for key in self._changed}
            self._changed.clear()
            try:
                await self._database.write(_write_changes, changes)
            except Unavailable:
                self._changed = dict.fromkeys([*changes, *self._changed])
                break
            except Exception as error:  # noqa: BLE001 - these changes are lost, later ones are not
                log_exception("alerts: write", error)
        self._task = None


def _write_changes(tx: Transaction, changes: dict[_Key, Alert | None]) -> None:
    for (name, subject), alert in changes.items():
        if alert is None:
            drop_alert(tx, name, subject)
        else:
            put_alert(tx, alert)


def notice_blocked(alerts: Alerts, endpoint_id: str, reason: str) -> None:
    """Raise the alert that the URL policy blocks an endpoint. `reason` is part of its text."""
    sentence = f"webhook endpoint {endpoint_id} is blocked: {reason}"
    alerts.begin(ENDPOINT_BLOCKED, sentence, endpoint_id)
