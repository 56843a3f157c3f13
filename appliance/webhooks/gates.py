"""Gates: hold webhooks while the clock is untrusted; charge no attempts while offline.

A receiver refuses a signature whose time is off by 300 s, so a wrong clock would use up every
attempt. Due deliveries are held instead, and leave when the clock can be trusted again.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from appliance.alerts import (
    CLOCK_HELD,
    CLOCK_LEAPT,
    CLOCK_UNCONFIRMED,
    Alerts,
    list_alerts,
)
from appliance.clock import BoxClock, Clock, ClockMark
from appliance.clock_records import (
    find_clock_mark,
    find_latest_instant,
    put_clock_mark,
    write_heartbeat,
)
from appliance.clock_signals import Alarm, Uptime
from appliance.core.errors import Unavailable, log_exception
from appliance.core.network import Network
from appliance.database.connection import Transaction
from appliance.database.database import ChangedBeside, Database
from appliance.outbox import ClockConfirmed
from appliance.webhooks.client import CONN_TIMEOUT, DNS_TEMP, NO_ROUTE
from appliance.webhooks.deliveries import Outcome
from appliance.webhooks.dependencies import Dependencies
from appliance.webhooks.endpoints import list_active_endpoints
from appliance.webhooks.retry_policy import DELAYS_MS, longest_wait, settle_some_waits

QUIET_MS = 60_000
AGAIN_MS = 60_000
_EVIDENCE_MS = 2 * AGAIN_MS
_EVIDENCE = (NO_ROUTE, DNS_TEMP, CONN_TIMEOUT)


class OfflineGate:
    """Decides whether the box itself was offline, from recent results of external endpoints."""

    def __init__(self, network: Network, uptime: Uptime) -> None:
        self._network = network
        self._uptime = uptime
        self._last_success: int | None = None
        self._failed_at: dict[str, int] = {}

    def note_success(self) -> None:
        """Record that an external endpoint answered, with any status."""
        self._last_success = self._uptime.milliseconds()
        self._failed_at.clear()

    def is_to_blame(
        self, outcome: Outcome, host: str, hosts_outside: set[str], *, is_local: bool
    ) -> bool:
        """Whether the box had no route to `host`, judging by this and earlier outcomes.

        `hosts_outside` are all hosts outside the venue's network. For such a host, the box is to
        blame if the system has no default route; or if nothing succeeded for a minute and two
        hosts fail this way, or the only host fails with no route or a DNS error.
        """
        now = self._uptime.milliseconds()
        if is_local:
            return outcome.code == NO_ROUTE
        if outcome.code not in _EVIDENCE:
            return False
        self._failed_at[host] = now
        if not self._network.has_way_out():
            return True
        if self._last_success is not None and now - self._last_success < QUIET_MS:
            return False
        lately = sum(now - at <= _EVIDENCE_MS for at in self._failed_at.values())
        return lately >= (2 if outcome.code == CONN_TIMEOUT else min(2, len(hosts_outside)))


log = logging.getLogger(__name__)
_LONGEST = tuple(longest_wait(attempts) for attempts in range(len(DELAYS_MS) + 1))
_CHECK_MS = 15_000
_WRITE_EVERY_MS = 3_600_000
_LEAPT = (
    "the clock stepped and no time server has confirmed it: nothing expires and no guest data is "
    "erased. If the date is right, confirm it in the portal, or with venuebox clock confirm"
)


class ClockGate:
    """Holds webhooks while the clock is untrusted. Checking a trusted clock is one subtraction."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        outside: Dependencies,
        grace_ms: int,
        conditions: Alerts,
        on_trusted: Callable[[], None],
    ) -> None:
        """`on_trusted` is called when the clock is trusted again."""
        self._database = database
        self._outside = outside
        self._uptime = outside.uptime
        self._conditions = conditions
        self._on_trusted = on_trusted
        self._sure_anyway = grace_ms == 0
        up = outside.uptime
        boxed = isinstance(database.clock, BoxClock) and database.clock
        self._clock = boxed or BoxClock(
            clock, up.boot, up.milliseconds, outside.synchronised, grace_ms
        )
        self._changes = self._steps = 0
        self._open = False
        self._waits_are_stale = True
        self._alarm: Alarm | None = None
        self._listeners: list[Callable[[], None]] = []
        self._stop_watching: Callable[[], None] | None = None
        self._settling: asyncio.Task[None] | None = None
        self._written_at: int | None = None

    async def start(self) -> None:
        """Judge the clock. If it is trusted, recompute retry due times before returning."""
        if self._clock is not self._database.clock:
            recall_clock(self._clock, self._database)
        self._database.on_commit(self._on_commit)
        self._stop_watching = self._outside.watch_clock_steps(self._on_set)
        self._look()
        if self._settling is not None:
            await self._settling

    async def close(self) -> None:
        """Stop watching the clock and store its mark."""
        if self._stop_watching is not None:
            self._stop_watching()
        self._set_alarm(None)
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)
        if self._open and not self._clock.was_set():
            try:
                await self._remember()
            except Unavailable:
                log.info("webhooks: clock mark not stored at shutdown: database not writable")

    def permits(self) -> bool:
        """Whether webhooks may be signed now."""
        return self.time_to_sign() is not None

    def time_to_sign(self) -> int | None:
        """The judged time to sign with, in ms since 1970; None while the gate is closed."""
        now, uptime = self._clock.read()
        if self._clock.was_set_by(now, uptime):
            self._clock.look_at(now, uptime)
        if self._clock.changes != self._changes:
            self._act()
        return now if self._open else None

    def may_expire(self) -> bool:
        """Whether data may be deleted by age according to this clock."""
        if self._clock.stepped_far:  # a time server that agrees causes no event: look now
            self._look()
        return self.permits() and not self._clock.stepped_far

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when timers may be wrong. Returns a function that unsubscribes.

        That is after the clock was set, after the machine slept (timers do not count sleep), and
        when the clock is trusted again.
        """
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def mark_to_write(self) -> ClockMark | None:
        """The clock mark to write with the current commit, once an hour; otherwise None."""
        now = self._uptime.milliseconds()
        is_due = self._written_at is not None and now >= self._written_at + _WRITE_EVERY_MS
        # After the clock was set, the next judgement decides whether to store its time.
        if not (self._open and is_due) or self._clock.was_set():
            return None
        self._written_at = now
        return self._clock.mark

    def _on_set(self) -> None:
        """Called when the kernel reports that the clock was set or the machine resumed."""
        self._look()
        self._tell()

    def _on_commit(self, notices: Sequence[object]) -> None:
        """Check whether the clock was confirmed, in the portal or by a command."""
        may_confirm = any(isinstance(each, ClockConfirmed | ChangedBeside) for each in notices)
        if not (self._clock.stepped_far and may_confirm):
            return
        if self._conditions.was_taken_back(CLOCK_LEAPT):
            log.info("webhooks: the clock was confirmed by an operator")
            self._clock.confirm()
            self._tell()

    def _tell(self) -> None:
        for callback in tuple(self._listeners):
            callback()

    def _look(self) -> None:
        """Judge the clock and act on the result."""
        self._clock.look()
        self._act()

    def _act(self) -> None:
        """Act on the latest judgement."""
        self._changes = self._clock.changes
        if self._steps != self._clock.steps:
            self._steps, self._waits_are_stale = self._clock.steps, True
        if self._clock.stepped_far:
            self._conditions.begin(CLOCK_LEAPT, _LEAPT)
        else:
            self._conditions.end(CLOCK_LEAPT, "the clock step is resolved")
        if self._clock.trusted:
            self._set_alarm(None)
            self._warn(self._clock.doubt)
            if self._has_to_settle() and self._settling is None:
                self._settling = asyncio.create_task(self._settle(), name="clock gate")
        else:
            self._open = False
            sentence = f"webhooks wait, for the clock is not trusted: {self._clock.doubt}"
            self._conditions.begin(CLOCK_HELD, sentence)
            now = self._uptime.milliseconds()
            ends = self._clock.grace_ends_at
            self._set_alarm(min(now + _CHECK_MS, ends) if ends > now else now + _CHECK_MS)

    def _warn(self, doubt: str) -> None:
        if doubt and not self._sure_anyway:
            sentence = f"webhooks are sent by a clock that may be wrong: {doubt}"
            self._conditions.begin(CLOCK_UNCONFIRMED, sentence)
        else:
            self._conditions.end(CLOCK_UNCONFIRMED, "the clock is confirmed")

    async def _settle(self) -> None:
        """Recompute retry due times by the trusted clock, then open the gate."""
        try:
            while self._has_to_settle():
                self._waits_are_stale = False
                await settle_waits(self._database, self._uptime)
                await self._remember()
                self._written_at = self._uptime.milliseconds()
                self._reopen()
        except Exception as error:  # noqa: BLE001 - retried by the alarm
            if not isinstance(error, Unavailable):
                log_exception("webhooks: recompute due times", error)
            self._waits_are_stale = True
            self._set_alarm(self._uptime.milliseconds() + _CHECK_MS)
        finally:
            self._settling = None

    async def _remember(self) -> None:
        """Store the current mark; the clock may have been set since the caller awaited."""
        mark = self._clock.mark
        if mark is not None:
            await self._database.write(_put_mark, mark, is_sure=not self._clock.stepped_far)

    def _has_to_settle(self) -> bool:
        return self._clock.trusted and (self._waits_are_stale or not self._open)

    def _reopen(self) -> None:
        if self._clock.trusted and not (self._open or self._waits_are_stale):
            self._open = True
            self._conditions.end(CLOCK_HELD, "the clock is trusted again: webhooks are sent")
            self._on_trusted()
            self._tell()

    def _set_alarm(self, at: int | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None if at is None else self._uptime.call_at(at, self._look)


async def settle_waits(database: Database, uptime: Uptime) -> None:
    """Convert the due times of all pending retries to this boot's uptime and the current clock.

    Works in steps of 500 rows, so that other writes can run between them. Needs a trusted
    clock: after a reboot, only the clock tells how much of a wait is left.
    """

    def settle(tx: Transaction, endpoint_id: str, after: tuple[int, int]) -> tuple[int, int] | None:
        now = uptime.milliseconds()
        return settle_some_waits(tx, endpoint_id, after, uptime.boot, now, _LONGEST)

    for endpoint in await database.read(list_active_endpoints):
        after: tuple[int, int] | None = (0, 0)
        while after is not None:
            after = await database.write(settle, endpoint.id, after)


def recall_clock(clock: BoxClock, database: Database) -> None:
    """Initialise the clock from the marks and alerts in this database."""
    noted = database.peek(list_alerts)
    clock.remember(
        database.peek(find_clock_mark),
        database.peek(find_latest_instant),
        stepped_far=any(condition.name == CLOCK_LEAPT for condition in noted),
    )


def _put_mark(tx: Transaction, mark: ClockMark, *, is_sure: bool) -> None:
    """Store the mark and a heartbeat, so that months without writes do not look like a step."""
    put_clock_mark(tx, mark)
    if is_sure:
        write_heartbeat(tx)
