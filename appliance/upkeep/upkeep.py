"""Upkeep: does each chore of one environment when it falls due, and otherwise sleeps."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from appliance.accidents import log_accident
from appliance.actions.announce import Announced
from appliance.actions.remind import find_next_reminder, remind
from appliance.clock import Clock
from appliance.clock_steps import WatchClockSteps
from appliance.environment import Environment
from appliance.errors import Refusal
from appliance.store.connection import Reader, Transaction
from appliance.upkeep.chores import BATCH, CHORES, find_next_due

log = logging.getLogger(__name__)

_SETTLE_SECONDS = 1.0
_AGAIN_SECONDS = 60.0
_FALL_DUE = {"reservation.created", "reservation.confirmed"}


class Alarm(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """Make it not come."""
        ...


CallLater = Callable[[float, Callable[[], None]], Alarm]


class Upkeep:
    """One timer, set to the next instant at which anything is due. Nothing due: no timer."""

    def __init__(
        self,
        environment: Environment,
        clock: Clock,
        call_later: CallLater | None = None,
        may_expire: Callable[[], bool] = lambda: True,
        watch_clock: WatchClockSteps | None = None,
    ) -> None:
        """`may_expire`: whether the clock is good enough to end an evening by it.

        `watch_clock` calls back when the timer may be wrong, as it counts neither what the clock
        is set by nor what the machine sleeps. `call_later` is the event loop's own unless a test
        owns the time.
        """
        self._database = environment.database
        self._reminder_hours = environment.settings.mail.reminder_hours
        self._clock = clock
        self._call_later = call_later
        self._may_expire = may_expire
        self._watch_clock = watch_clock
        self._stop_watching: Callable[[], None] | None = None
        self._alarm: Alarm | None = None
        self._settling = False
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Begin: what fell due while the box was off is done now, beside the first requests."""
        self._database.on_commit(self._on_commit)
        if self._watch_clock is not None:
            self._stop_watching = self._watch_clock(self._look_anew)
        self._look()

    async def close(self) -> None:
        """Stop; a batch that is being written is finished."""
        self._closed = True
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        self._cancel()
        await self.settle()

    async def settle(self) -> None:
        """Wait until nothing is being done."""
        if self._task is not None:
            await self._task

    def _on_commit(self, notices: Sequence[object]) -> None:
        """What is new may fall due: look again soon, once for a thousand bookings."""
        if self._settling or self._closed or not any(map(_may_fall_due, notices)):
            return
        self._settling = True
        self._set(_SETTLE_SECONDS)

    def _look_anew(self) -> None:
        """The clock was set, the machine slept, or the clock is trusted again."""
        if not self._closed:
            self._settling = True  # what is under way may have begun by another time
            self._cancel()
            self._look()

    def _look(self) -> None:
        self._alarm = None
        if self._task is not None and not self._task.done():
            self._set(_SETTLE_SECONDS)
            return
        self._settling = False
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            due = await self._do_what_is_due()
        except Refusal as refusal:
            log.warning("upkeep waits a minute: %s", refusal)
            self._set(_AGAIN_SECONDS)
            return
        except Exception as error:  # noqa: BLE001 - it tries again in a minute
            log_accident("upkeep", error)
            self._set(_AGAIN_SECONDS)
            return
        if due is not None and not self._settling:
            # Overdue although it was just done: never spin on it.
            seconds = (due - self._clock.now()) / 1000
            self._set(seconds if seconds > 0 else _AGAIN_SECONDS)

    async def _do_what_is_due(self) -> int | None:
        """Do the chores if any is due; when the next one will be, in ms since 1970."""
        due = await self._database.read(self._find_next_due)
        if due is None or due > self._clock.now():
            return due
        if not self._may_expire():  # it is asked again in a minute: nothing can be taken back
            return due
        for chore in (*CHORES, self._remind):
            while not self._closed and await self._database.write(chore) == BATCH:
                pass
        return await self._database.read(self._find_next_due)

    def _find_next_due(self, reader: Reader) -> int | None:
        instants = [find_next_due(reader)]
        if self._reminder_hours:
            instants.append(find_next_reminder(reader, self._reminder_hours))
        return min((instant for instant in instants if instant is not None), default=None)

    def _remind(self, tx: Transaction) -> int:
        return remind(tx, self._reminder_hours, BATCH) if self._reminder_hours else 0

    def _set(self, seconds: float) -> None:
        self._cancel()
        if not self._closed:
            later = self._call_later or asyncio.get_running_loop().call_later
            self._alarm = later(seconds, self._look)

    def _cancel(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def _may_fall_due(notice: object) -> bool:
    return isinstance(notice, Announced) and notice.event_type in _FALL_DUE
