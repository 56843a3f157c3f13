"""When nothing is sent or charged: an untrusted clock, a box offline."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from appliance.alerts import (
    CLOCK_HELD,
    CLOCK_UNCONFIRMED,
    Alerts,
    drop_alert,
    list_alerts,
)
from appliance.clock import BoxClock, Clock, ClockMark
from appliance.clock_signals import Alarm, Uptime
from appliance.core.errors import Unavailable, log_exception
from appliance.core.network import Network
from appliance.database.connection import Transaction
from appliance.database.database import ChangedBeside, Database
from appliance.database.heartbeat import (
    find_clock_mark,
    find_latest_instant,
    put_clock_mark,
    write_heartbeat,
)
from appliance.outbox import ClockConfirmed
from appliance.staff.audit_log import record_audit
from appliance.webhooks.client import CONN_TIMEOUT, DNS_TEMP, NO_ROUTE
from appliance.webhooks.deliveries import Outcome
from appliance.webhooks.dependencies import Dependencies
from appliance.webhooks.endpoints import list_active_endpoints
from appliance.webhooks.retry_policy import DELAYS_MS, longest_wait, settle_some_waits

CLOCK_LEAPT = "clock_leapt"  # outlives the process: a restart makes no wrong clock right


def confirm_clock(tx: Transaction, actor: str) -> None:
    """Let things expire by it again (docs/decisions/time.md). For each environment by itself.

    `actor` as record_audit wants it.
    """
    drop_alert(tx, CLOCK_LEAPT, "")
    write_heartbeat(tx)
    record_audit(tx, actor, "clock_confirmed")
    tx.notices.append(ClockConfirmed())


QUIET_MS = 60_000
AGAIN_MS = 60_000
_EVIDENCE_MS = 2 * AGAIN_MS
_EVIDENCE = (NO_ROUTE, DNS_TEMP, CONN_TIMEOUT)


class OfflineGate:
    """Says whether a failure is the box's own, from what the endpoints outside came to lately."""

    def __init__(self, network: Network, uptime: Uptime) -> None:
        self._network = network
        self._uptime = uptime
        self._last_success: int | None = None
        self._failed_at: dict[str, int] = {}

    def note_success(self) -> None:
        """An endpoint outside answered, whatever it said."""
        self._last_success = self._uptime.milliseconds()
        self._failed_at.clear()

    def is_to_blame(
        self, outcome: Outcome, host: str, hosts_outside: set[str], *, is_local: bool
    ) -> bool:
        """Whether the box had no way to `host`, by this outcome and those before it.

        `hosts_outside` are all that are not in the venue's network. For one of those it takes
        the machine's own word that no way leads out; or a minute without a success, and either
        two hosts that fail so or the only one whose name nobody answers for.
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
    "the clock leapt, and no time server has confirmed it: nothing expires by it and no guest is "
    "forgotten. If its date is right, say so in the portal, or with venuebox clock confirm"
)


class ClockGate:
    """Holds while the clock is not trusted. Trusted, it costs a subtraction a pump."""

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
        """Judge the clock; when it is trusted, waits are counted by it before this returns."""
        if self._clock is not self._database.clock:
            recall_clock(self._clock, self._database)
        self._database.on_commit(self._on_commit)
        self._stop_watching = self._outside.watch_clock_steps(self._on_set)
        self._look()
        if self._settling is not None:
            await self._settling

    async def close(self) -> None:
        """Watch no longer, and remember the clock."""
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
                log.info("the time of this stop is not remembered: the disk takes nothing")

    def permits(self) -> bool:
        """Whether something may be signed now."""
        return self.time_to_sign() is not None

    def time_to_sign(self) -> int | None:
        """The time to sign with, in ms since 1970: that which was judged. None while it holds."""
        now, uptime = self._clock.read()
        if self._clock.was_set_by(now, uptime):
            self._clock.look_at(now, uptime)
        if self._clock.changes != self._changes:
            self._act()
        return now if self._open else None

    def may_expire(self) -> bool:
        """Whether things may be thrown away because of their age by this clock."""
        if self._clock.stepped_far:  # a time server that agrees sets nothing, and nobody tells
            self._look()
        return self.permits() and not self._clock.stepped_far

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when timers may be wrong; the result stops that.

        So whenever the clock was set or the machine slept, which timers do not count, and when
        the clock is trusted again.
        """
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def mark_to_write(self) -> ClockMark | None:
        """The mark, once an hour, for a commit that happens anyway."""
        now = self._uptime.milliseconds()
        is_due = self._written_at is not None and now >= self._written_at + _WRITE_EVERY_MS
        # Of a clock that was set the next judgement says whether its time is one to remember.
        if not (self._open and is_due) or self._clock.was_set():
            return None
        self._written_at = now
        return self._clock.mark

    def _on_set(self) -> None:
        """The kernel says that the clock was set, or that the machine is awake again."""
        self._look()
        self._tell()

    def _on_commit(self, notices: Sequence[object]) -> None:
        """A person may have said that the clock is right: in the portal, or at the box itself."""
        may_confirm = any(isinstance(each, ClockConfirmed | ChangedBeside) for each in notices)
        if not (self._clock.stepped_far and may_confirm):
            return
        if self._conditions.was_taken_back(CLOCK_LEAPT):
            log.info("somebody says that the clock is right")
            self._clock.confirm()
            self._tell()

    def _tell(self) -> None:
        for callback in tuple(self._listeners):
            callback()

    def _look(self) -> None:
        """Judge the clock, and act by it."""
        self._clock.look()
        self._act()

    def _act(self) -> None:
        """By the latest judgement, whoever asked for it."""
        self._changes = self._clock.changes
        if self._steps != self._clock.steps:
            self._steps, self._waits_are_stale = self._clock.steps, True
        if self._clock.stepped_far:
            self._conditions.begin(CLOCK_LEAPT, _LEAPT)
        else:
            self._conditions.end(CLOCK_LEAPT, "the clock is where it should be")
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
            sentence = f"webhooks go out by a clock that may be wrong: {doubt}"
            self._conditions.begin(CLOCK_UNCONFIRMED, sentence)
        else:
            self._conditions.end(CLOCK_UNCONFIRMED, "the clock is confirmed")

    async def _settle(self) -> None:
        """Count the waits by the clock that is trusted now; then open."""
        try:
            while self._has_to_settle():
                self._waits_are_stale = False
                await settle_waits(self._database, self._uptime)
                await self._remember()
                self._written_at = self._uptime.milliseconds()
                self._reopen()
        except Exception as error:  # noqa: BLE001 - it is tried again
            if not isinstance(error, Unavailable):
                log_exception("counting waits by the clock", error)
            self._waits_are_stale = True
            self._set_alarm(self._uptime.milliseconds() + _CHECK_MS)
        finally:
            self._settling = None

    async def _remember(self) -> None:
        """Write the mark: while it was waited for, the clock may have been set."""
        mark = self._clock.mark
        if mark is not None:
            await self._database.write(_put_mark, mark, is_sure=not self._clock.stepped_far)

    def _has_to_settle(self) -> bool:
        return self._clock.trusted and (self._waits_are_stale or not self._open)

    def _reopen(self) -> None:
        if self._clock.trusted and not (self._open or self._waits_are_stale):
            self._open = True
            self._conditions.end(CLOCK_HELD, "the clock is trusted again: webhooks go out")
            self._on_trusted()
            self._tell()

    def _set_alarm(self, at: int | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None if at is None else self._uptime.call_at(at, self._look)


async def settle_waits(database: Database, uptime: Uptime) -> None:
    """Bring every pending retry to this boot, and its `due_at` to the present clock.

    In steps of 500 rows, between which others write. Needs a clock that is trusted: what is
    left of a wait after a start of the machine is told by it alone.
    """

    def settle(tx: Transaction, endpoint_id: str, after: tuple[int, int]) -> tuple[int, int] | None:
        now = uptime.milliseconds()
        return settle_some_waits(tx, endpoint_id, after, uptime.boot, now, _LONGEST)

    for endpoint in await database.read(list_active_endpoints):
        after: tuple[int, int] | None = (0, 0)
        while after is not None:
            after = await database.write(settle, endpoint.id, after)


def recall_clock(clock: BoxClock, database: Database) -> None:
    """Let the clock begin with what this database knows of it."""
    noted = database.peek(list_alerts)
    clock.remember(
        database.peek(find_clock_mark),
        database.peek(find_latest_instant),
        stepped_far=any(condition.name == CLOCK_LEAPT for condition in noted),
    )


def _put_mark(tx: Transaction, mark: ClockMark, *, is_sure: bool) -> None:
    """With the time: where nobody writes for months, the next start sees no leap in that."""
    put_clock_mark(tx, mark)
    if is_sure:
        write_heartbeat(tx)
