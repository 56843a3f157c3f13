"""The clock gate: holds webhooks while the clock is untrusted, and stores the clock's state.

A receiver refuses a signature whose timestamp is wrong by more than 300 s. With a wrong clock, all
attempts would therefore fail. Due deliveries wait instead, and are sent when the clock is trusted
again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict

from appliance.alerts import (
    CLOCK_HELD,
    CLOCK_LEAPT,
    CLOCK_UNCONFIRMED,
    Alerts,
    drop_alert,
    list_alerts,
)
from appliance.clock import BoxClock, ClockMark, SystemUptime, WatchClockSteps
from appliance.core.errors import Unavailable, log_exception
from appliance.database.connection import Reader, Transaction
from appliance.database.database import ChangedBeside, Database
from appliance.outbox import ClockConfirmed
from appliance.staff.audit_log import record_audit


def find_heartbeat(reader: Reader) -> int | None:
    """Return the time of the last heartbeat, in ms since 1970; None if there is none."""
    return reader.one(int, "SELECT at FROM heartbeat WHERE id = 1")


def write_heartbeat(tx: Transaction) -> None:
    """Store the current time as the latest heartbeat.

    Health checks call this to test whether the database is writable.
    """
    sql = "INSERT INTO heartbeat (id, at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET at = :now"
    tx.execute(sql, {"now": tx.now})


def confirm_clock(tx: Transaction, actor: str) -> None:
    """Confirm the clock in one environment, so that expiry resumes (docs/decisions/time.md).

    `actor` has the same format as in `record_audit`.
    """
    drop_alert(tx, CLOCK_LEAPT, "")
    write_heartbeat(tx)
    record_audit(tx, actor, "clock_confirmed")
    tx.notices.append(ClockConfirmed())


def recall_clock(clock: BoxClock, database: Database) -> None:
    """Initialise the clock from the clock mark, the alerts and the latest time in the database."""
    alerts = database.peek(list_alerts)
    clock.remember(
        database.peek(_find_clock_mark),
        database.peek(find_latest_instant),
        stepped_far=any(alert.name == CLOCK_LEAPT for alert in alerts),
    )


def _find_clock_mark(reader: Reader) -> ClockMark | None:
    return reader.one(ClockMark, "SELECT at, boot, offset_ms FROM clock_mark")


def find_latest_instant(reader: Reader) -> int | None:
    """Return the time of the latest scan, history entry or heartbeat, in ms since 1970, or None."""
    sql = """SELECT max(at) FROM (
                 SELECT * FROM (SELECT at FROM scan_log ORDER BY seq DESC LIMIT 1) UNION ALL
                 SELECT * FROM (SELECT at FROM history ORDER BY seq DESC LIMIT 1) UNION ALL
                 SELECT at FROM heartbeat)"""
    latest: int | None = reader.value(sql)
    return latest


log = logging.getLogger(__name__)
_CHECK_MS = 15_000
_WRITE_EVERY_MS = 3_600_000
_LEAPT = (
    "the clock stepped and no time server has confirmed it, so nothing expires and no guest "
    "data is erased. If the date is right, confirm it in the portal, or with venuebox clock confirm"
)


class ClockGate:
    """A gate that lets webhooks through only while the clock is trusted."""

    def __init__(
        self,
        database: Database,
        clock: BoxClock,
        uptime: SystemUptime,
        watch_clock_steps: WatchClockSteps,
        alerts: Alerts,
        rebase_due_times: Callable[[], Awaitable[None]],
        on_trusted: Callable[[], None],
    ) -> None:
        """`rebase_due_times` must convert the due times of retries to the current clock.

        It is called before the gate opens. `on_trusted` is called when the gate has opened.
        """
        self._database = database
        self._clock = clock
        self._uptime = uptime
        self._watch_clock_steps = watch_clock_steps
        self._alerts = alerts
        self._rebase_due_times = rebase_due_times
        self._on_trusted = on_trusted
        self._changes = self._steps = 0
        self._open = False
        self._due_times_are_stale = True
        self._alarm: asyncio.TimerHandle | None = None
        self._listeners: list[Callable[[], None]] = []
        self._stop_watching: Callable[[], None] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._storing: asyncio.Task[None] | None = None
        self._written_at: int | None = None

    async def start(self) -> None:
        """Assess the clock. If it is trusted, rebase the due times and wait for this to finish."""
        if self._clock is not self._database.clock:
            recall_clock(self._clock, self._database)
        self._database.on_commit(self._store_mark_if_due)
        self._database.on_commit(self._on_confirmed, ClockConfirmed, ChangedBeside)
        self._stop_watching = self._watch_clock_steps(self._on_set)
        self._check()
        if self._opening is not None:
            await self._opening

    async def close(self) -> None:
        """Stop watching the clock, and store its mark."""
        if self._stop_watching is not None:
            self._stop_watching()
        self._set_alarm(None)
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._storing is not None:
            await self._storing
        if self._open and not self._clock.was_set():
            await self._try_to_store_mark()

    def permits(self) -> bool:
        """Whether webhooks may be signed now."""
        return self.time_to_sign() is not None

    def time_to_sign(self) -> int | None:
        """Return the time to use in signatures, in ms since 1970; None while the gate is closed."""
        now, uptime = self._clock.read()
        if self._clock.was_set_by(now, uptime):
            self._clock.assess_at(now, uptime)
        if self._clock.changes != self._changes:
            self._apply()
        return now if self._open else None

    def may_expire(self) -> bool:
        """Whether the clock is reliable enough to delete data by age."""
        # A time server may have confirmed the clock since the last check. No callback reports this.
        if self._clock.stepped_far:
            self._check()
        return self.permits() and not self._clock.stepped_far

    def watch(self, callback: Callable[[], None]) -> None:
        """From now on, call `callback` whenever timers may be wrong.

        Timers may be wrong after the clock has been set, after the machine has been suspended
        (timers do not count that time), and when the clock becomes trusted again.
        """
        self._listeners.append(callback)

    def _on_set(self) -> None:
        """Handle the kernel's report that the clock was set or the machine resumed."""
        self._check()
        self._notify()

    def _on_confirmed(self, _notices: Sequence[object]) -> None:
        """Check whether an operator confirmed the clock."""
        if self._clock.stepped_far and self._alerts.was_taken_back(CLOCK_LEAPT):
            log.info("webhooks: the clock was confirmed by an operator")
            self._clock.confirm()
            self._notify()

    def _notify(self) -> None:
        for callback in tuple(self._listeners):
            callback()

    def _check(self) -> None:
        self._clock.assess()
        self._apply()

    def _apply(self) -> None:
        """Apply the latest assessment: raise or clear alerts, open or close the gate."""
        clock, alerts = self._clock, self._alerts
        self._changes = clock.changes
        if self._steps != clock.steps:
            self._steps, self._due_times_are_stale = clock.steps, True
        if clock.stepped_far:
            alerts.begin(CLOCK_LEAPT, _LEAPT)
        else:
            alerts.end(CLOCK_LEAPT, "the clock step is resolved")
        if not clock.trusted:
            self._open = False
            sentence = f"webhooks wait because the clock is not trusted: {clock.doubt}"
            alerts.begin(CLOCK_HELD, sentence)
            now, ends = self._uptime.milliseconds(), clock.grace_ends_at
            self._set_alarm(min(now + _CHECK_MS, ends) if ends > now else now + _CHECK_MS)
            return
        self._set_alarm(None)
        # With a grace period of 0, the box does not wait for a time server, so do not warn.
        if clock.doubt and clock.grace_ms:
            sentence = f"webhooks are signed with a clock that may be wrong: {clock.doubt}"
            alerts.begin(CLOCK_UNCONFIRMED, sentence)
        else:
            alerts.end(CLOCK_UNCONFIRMED, "the clock is confirmed")
        if self._opening is None and (self._due_times_are_stale or not self._open):
            self._opening = asyncio.create_task(self._rebase_and_open(), name="clock gate")

    async def _rebase_and_open(self) -> None:
        """Rebase the due times to the trusted clock, then open the gate.

        If the clock is set in the meantime, the due times are rebased again.
        """
        try:
            while self._clock.trusted and (self._due_times_are_stale or not self._open):
                self._due_times_are_stale = False
                await self._rebase_due_times()
                await self._store_mark()
                self._written_at = self._uptime.milliseconds()
                self._reopen()
        except Exception as error:  # noqa: BLE001 - the alarm set below retries
            if not isinstance(error, Unavailable):
                log_exception("webhooks: rebase due times", error)
            self._due_times_are_stale = True
            self._set_alarm(self._uptime.milliseconds() + _CHECK_MS)
        finally:
            self._opening = None

    def _reopen(self) -> None:
        if self._clock.trusted and not (self._open or self._due_times_are_stale):
            self._open = True
            self._alerts.end(CLOCK_HELD, "the clock is trusted again, so webhooks are sent")
            self._on_trusted()
            self._notify()

    def _store_mark_if_due(self, _notices: Sequence[object]) -> None:
        """Store the clock mark after a commit, at most once an hour."""
        now = self._uptime.milliseconds()
        is_due = self._written_at is not None and now >= self._written_at + _WRITE_EVERY_MS
        # If the clock was just set, do not store its time until the clock has been checked.
        if self._open and is_due and not self._clock.was_set():
            self._written_at = now
            self._storing = asyncio.create_task(self._try_to_store_mark(), name="clock mark")

    async def _try_to_store_mark(self) -> None:
        try:
            await self._store_mark()
        except Unavailable:
            log.info("webhooks: the clock mark was not stored because the database is not writable")

    async def _store_mark(self) -> None:
        mark = self._clock.mark
        if mark is not None:  # None if the clock was never trusted
            await self._database.write(_put_mark, mark, is_sure=not self._clock.stepped_far)

    def _set_alarm(self, at: int | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None if at is None else self._uptime.call_at(at, self._check)


def _put_mark(tx: Transaction, mark: ClockMark, *, is_sure: bool) -> None:
    """Store the mark. If `is_sure` is True, also write a heartbeat.

    Without heartbeats, 40 days without new data would look like a clock step at the next start.
    """
    sql = """INSERT INTO clock_mark (id, at, boot, offset_ms) VALUES (1, :at, :boot, :offset)
             ON CONFLICT (id) DO UPDATE SET at = :at, boot = :boot, offset_ms = :offset"""
    tx.execute(sql, asdict(mark))
    if is_sure:
        write_heartbeat(tx)
