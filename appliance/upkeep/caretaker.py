"""The caretaker: does each chore when it falls due, and otherwise sleeps."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from appliance.actions.announce import Announced
from appliance.clock import Clock
from appliance.errors import Refusal
from appliance.store.database import Database
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


class Caretaker:
    """One timer for all databases, set to the next instant at which anything is due.

    Nothing due: no timer. What fell due while the box was off is done at `start`.
    """

    def __init__(
        self, databases: Sequence[Database], clock: Clock, call_later: CallLater | None = None
    ) -> None:
        """`call_later` is the event loop's own unless a test owns the time."""
        self._databases = databases
        self._clock = clock
        self._call_later = call_later
        self._alarm: Alarm | None = None
        self._settling = False
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def start(self) -> None:
        """Do what is overdue and set the timer. Call it inside the event loop."""
        for database in self._databases:
            database.on_commit(self._on_commit)
        self._look()

    async def close(self) -> None:
        """Stop; a batch that is being written is finished."""
        self._closed = True
        self._cancel()
        if self._task is not None:
            await self._task

    async def settle(self) -> None:
        """Wait until nothing is being done."""
        while self._task is not None and not self._task.done():
            await self._task

    def _on_commit(self, notices: Sequence[object]) -> None:
        """What is new may fall due: look again soon, once for a thousand bookings."""
        if self._settling or self._closed or not any(map(_may_fall_due, notices)):
            return
        self._settling = True
        self._set(_SETTLE_SECONDS)

    def _look(self) -> None:
        self._alarm = None
        if self._task is not None and not self._task.done():
            self._set(_SETTLE_SECONDS)
            return
        self._settling = False
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            dues = [await self._look_after(database) for database in self._databases]
        except Refusal as refusal:
            log.warning("upkeep waits a minute: %s", refusal)
            self._set(_AGAIN_SECONDS)
            return
        except Exception:
            log.exception("upkeep failed, and tries again in a minute")
            self._set(_AGAIN_SECONDS)
            return
        due = min((due for due in dues if due is not None), default=None)
        if due is not None and not self._settling:
            # Overdue although it was just done: never spin on it.
            seconds = (due - self._clock.now()) / 1000
            self._set(seconds if seconds > 0 else _AGAIN_SECONDS)

    async def _look_after(self, database: Database) -> int | None:
        """Do the chores of one database if any is due; when the next one will be."""
        due = await database.read(find_next_due)
        if due is None or due > self._clock.now():
            return due
        for chore in CHORES:
            while not self._closed and await database.write(chore) == BATCH:
                pass
        return await database.read(find_next_due)

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
