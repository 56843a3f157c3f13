"""The scheduler: runs each job when it is due, using one timer for the earliest due time."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from appliance.clock import Alarm, BoxClock, CallLater, Cancellable
from appliance.core.errors import ApiError, OperatorError, log_exception
from appliance.database.connection import Reader
from appliance.database.database import Database

log = logging.getLogger(__name__)

_SETTLE_SECONDS = 1.0
_UNBELIEVED_SECONDS = 60.0
_DOUBLINGS = 11  # enough for the delay to grow from 2 s to more than an hour


T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Job:
    """A recurring job. `next_due` returns the job's due time in ms since 1970, or None.

    `next_due` is called in a reader thread. `run` is called only if `may_run` returns True, and
    never concurrently. A job that raises an exception, or is due again as soon as it ends, is
    retried after `first_retry`. The delay then doubles each time, up to `longest_retry`. Set
    `needs_clock` if `run` erases or ends something by date: while the clock is not believed, it is
    not called. Call `changed` when something other than a commit has changed the result of
    `next_due`.
    """

    name: str
    database: Database
    next_due: Callable[[Reader], int | None]
    run: Callable[[], Awaitable[None]]
    may_run: Callable[[], bool] = lambda: True
    first_retry: float = 2.0  # in seconds
    longest_retry: float = 3600.0  # in seconds
    needs_clock: bool = False
    changed: Callable[[], None] = lambda: None
    task: asyncio.Task[None] | None = None
    failures: int = 0
    not_before: float = 0.0  # monotonic time in seconds
    has_changed: bool = False  # True if `reset` was called since the job started

    def fail(self, now: float) -> None:
        """Schedule a retry, with exponential backoff from `now` (monotonic seconds)."""
        self.not_before = now + min(self.first_retry * 2**self.failures, self.longest_retry)
        self.failures = min(self.failures + 1, _DOUBLINGS)

    def reset(self) -> None:
        """Reset the backoff, so that the job runs as soon as it is due."""
        self.failures, self.not_before, self.has_changed = 0, 0.0, True


class Scheduler:
    """Runs jobs when they are due. One timer is set to the earliest due time.

    After commits, all due times are read again, because they may have changed.
    """

    def __init__(self, clock: BoxClock, call_later: CallLater | None = None) -> None:
        """`call_later` replaces the timer in tests."""
        self._clock = clock
        self._call_later: CallLater = call_later or partial(Alarm, clock)
        self._jobs: list[Job] = []
        self._databases: set[Database] = set()
        self._alarm: Cancellable | None = None
        self._settling = False
        self._looking: asyncio.Task[None] | None = None
        self._look_again = False
        self._running = False

    def start(self, *jobs: Job) -> None:
        """Add these jobs. Jobs that are due start immediately."""
        self._running = True
        self._jobs += jobs
        for job in jobs:
            job.changed = partial(self._on_change, job)
        for database in {job.database for job in jobs} - self._databases:
            self._databases.add(database)
            database.on_commit(self._on_commit)
        self.look()

    async def close(self) -> None:
        """Cancel the running jobs. Their transactions are committed completely or not at all."""
        self._running = False
        self._set(None)
        tasks = self._tasks()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._looking = None
        for job in self._jobs:
            job.task = None

    async def settle(self) -> None:
        """Wait until no job is running."""
        while tasks := self._tasks():
            await asyncio.wait(tasks)

    def _on_change(self, job: Job) -> None:
        job.reset()
        self.look()

    def look(self) -> None:
        """Start the jobs that are due, and set the timer for the next due time."""
        if not self._running:
            return
        self._set(None)
        self._settling = False
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        else:
            self._look_again = True

    def _on_commit(self, notices: Sequence[object]) -> None:
        """Look for due jobs 1 s from now, only once for all commits in that second."""
        if self._settling or not notices or not self._running:
            return
        self._settling = True
        self._set(_SETTLE_SECONDS)

    async def _look(self) -> None:
        self._look_again = True
        while self._look_again:
            self._look_again = False
            times = [await self._start_if_due(job) for job in self._jobs if job.task is None]
        self._looking = None
        if not self._settling:
            due_at = min((time for time in times if time is not None), default=None)
            self._set(None if due_at is None else due_at - self._clock.monotonic())

    async def _start_if_due(self, job: Job) -> float | None:
        """Start the job if it is due. Otherwise return the monotonic time when it is due, if any.

        Reading the other jobs' due times takes a while, which must not make this job late.
        """
        due: int | None = 0
        try:
            due = await job.database.read(job.next_due)
        except Exception as error:  # noqa: BLE001 - the other jobs must still run
            if job.not_before <= self._clock.monotonic():
                self._report(job, error)
                job.fail(self._clock.monotonic())
        if due is None:
            return None
        now = self._clock.monotonic()
        due_at = max(now + (due - self._clock.now()) / 1000, job.not_before)
        if due_at <= now and job.needs_clock and not self._clock.is_believed():
            due_at = now + _UNBELIEVED_SECONDS
        if due_at > now:
            return due_at
        job.task = asyncio.get_running_loop().create_task(self._run(job), name=job.name)
        return None

    async def _run(self, job: Job) -> None:
        job.has_changed = is_done = False
        try:
            if job.may_run():
                await job.run()
                due = await job.database.read(job.next_due)
                is_done = due is None or due > self._clock.now()
        except Exception as error:  # noqa: BLE001 - the job is retried
            self._report(job, error)
        finally:
            job.task = None
        if is_done or job.has_changed:
            job.reset()
        else:
            job.fail(self._clock.monotonic())
        self.look()

    def _report(self, job: Job, error: Exception) -> None:
        if isinstance(error, (ApiError, OperatorError, OSError)):
            log.warning("scheduler: %s failed and will be retried: %s", job.name, error)
        else:
            log_exception(f"scheduler: {job.name}", error)

    def _tasks(self) -> list[asyncio.Task[None]]:
        tasks = [self._looking, *(job.task for job in self._jobs)]
        return [task for task in tasks if task is not None]

    def _set(self, seconds: float | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if seconds is not None and self._running:
            self._alarm = self._call_later(seconds, self.look)


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Run `work` in a daemon thread and return its result.

    If the process exits, it does not wait for a daemon thread.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # so that cancelling the caller does not cancel `work`

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised in the caller
            done.set_exception(error)

    threading.Thread(target=run, name="blocking work", daemon=True).start()
    return await asyncio.wrap_future(done)
