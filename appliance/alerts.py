"""Alerts: what is wrong now. Raised and cleared once, kept as rows, read by portal and doctor."""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import asdict, dataclass

from appliance.core.errors import Unavailable, log_exception
from appliance.database.connection import Reader, Transaction
from appliance.database.database import Database


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that holds since an instant. `subject` is the id of what it is about, or empty."""

    name: str
    subject: str
    since: int
    detail: str


def list_alerts(reader: Reader) -> list[Alert]:
    """What holds now, the oldest first."""
    sql = "SELECT name, subject, since, detail FROM condition ORDER BY since, name, subject"
    return [Alert(*row) for row in reader.rows(sql)]


def put_alert(tx: Transaction, condition: Alert) -> None:
    """Note that something holds; if it was noted before, it still holds since then."""
    sql = """INSERT INTO condition (name, subject, since, detail)
             VALUES (:name, :subject, :since, :detail)
             ON CONFLICT (name, subject) DO UPDATE SET detail = :detail"""
    tx.execute(sql, asdict(condition))


def drop_alert(tx: Transaction, name: str, subject: str) -> None:
    """Note that something holds no longer."""
    sql = "DELETE FROM condition WHERE name = :name AND subject = :subject"
    tx.execute(sql, {"name": name, "subject": subject})


def drop_alerts(tx: Transaction, names: Collection[str]) -> None:
    """Note that nothing of these names holds, whatever it was about."""
    for name in names:
        tx.execute("DELETE FROM condition WHERE name = :name", {"name": name})


log = logging.getLogger(__name__)

OFFLINE = "box_offline"
CLOCK_HELD = "clock_held"
CLOCK_UNCONFIRMED = "clock_unconfirmed"
UNWRITTEN = "unwritten_outcomes"
ENDPOINT_FAILING = "endpoint_failing"
ENDPOINT_BLOCKED = "endpoint_blocked"
RECEIVER_CLOCK = "receiver_clock"

SKEW_WARNING_S = 60

# These are about the running process: nothing of them is left when it has ended.
_OF_THE_PROCESS = (OFFLINE, CLOCK_HELD, CLOCK_UNCONFIRMED, UNWRITTEN)
# These are about endpoints that are sent to.
_OF_ENDPOINTS = (ENDPOINT_FAILING, ENDPOINT_BLOCKED, RECEIVER_CLOCK)

_Key = tuple[str, str]


class Alerts:
    """Writes nothing but changes; what cannot be written is written with the next change."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._holding: dict[_Key, Alert] = {}
        self._changed: dict[_Key, None] = {}
        self._being_written: frozenset[_Key] = frozenset()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take up what the rows say of endpoints; forget what the process before had."""
        for condition in self._database.peek(list_alerts):
            self._holding[condition.name, condition.subject] = condition
            if condition.name in _OF_THE_PROCESS:
                self._forget((condition.name, condition.subject))

    def was_taken_back(self, name: str) -> bool:
        """Whether a command beside the box has dropped its row; then it holds no longer."""
        key = (name, "")
        if key not in self._holding or key in self._changed or key in self._being_written:
            return False
        if any(condition.name == name for condition in self._database.peek(list_alerts)):
            return False
        del self._holding[key]
        return True

    def begin(self, name: str, sentence: str, subject: str = "") -> None:
        """From now on it holds; `sentence` says so to the owner."""
        key = (name, subject)
        if key not in self._holding:
            log.warning("%s", sentence)
            now = self._database.clock.now()
            self._holding[key] = Alert(name, subject, now, sentence)
            self._write_soon(key)

    def end(self, name: str, sentence: str, subject: str = "") -> None:
        """It holds no longer, if it did."""
        if (name, subject) in self._holding:
            log.info("%s", sentence)
            self._forget((name, subject))

    def keep_only(self, subjects: set[str]) -> None:
        """Forget what was about other endpoints: nothing is sent to them any more."""
        for key in list(self._holding):
            if key[0] in _OF_ENDPOINTS and key[1] not in subjects:
                self._forget(key)

    async def close(self) -> None:
        """Forget what was about this process, and write what is not written yet, once."""
        for key in [key for key in self._holding if key[0] in _OF_THE_PROCESS]:
            self._forget(key)
        if self._task is not None:
            await self._task

    def _forget(self, key: _Key) -> None:
        del self._holding[key]
        self._write_soon(key)

    def _write_soon(self, key: _Key) -> None:
        self._changed[key] = None
        if self._task is None:
            self._task = asyncio.create_task(self._write(), name="conditions")

    async def _write(self) -> None:
        while self._changed:
            changes = {key: self._holding.get(key) for key in self._changed}
            self._changed.clear()
            self._being_written = frozenset(changes)
            try:
                await self._database.write(_write_changes, changes)
            except Unavailable:
                self._changed = dict.fromkeys([*changes, *self._changed])
                break
            except Exception as error:  # noqa: BLE001 - the log has said it already
                log_exception("writing conditions", error)
            finally:
                self._being_written = frozenset()
        self._task = None


def _write_changes(tx: Transaction, changes: dict[_Key, Alert | None]) -> None:
    for (name, subject), condition in changes.items():
        if condition is None:
            drop_alert(tx, name, subject)
        else:
            put_alert(tx, condition)


def notice_blocked(conditions: Alerts, endpoint_id: str, why: str) -> None:
    """The egress guard forbids an endpoint."""
    sentence = f"webhook endpoint {endpoint_id} is blocked: {why}"
    conditions.begin(ENDPOINT_BLOCKED, sentence, endpoint_id)
