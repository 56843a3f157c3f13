"""The scheduler: when it runs a job, checks the jobs, and retries."""

import asyncio

import pytest

from appliance.core.errors import OperatorError, Unavailable
from appliance.scheduler import Job, Scheduler
from tests.unit.jobs.keeping import Timer
from tests.waiting import until


class Work:
    """A job that is due when the test says so, and again a day after it ran."""

    def __init__(self, box):
        self.clock, self.due, self.runs, self.trouble = box.clock, None, 0, None
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_allowed = True
        self.job = Job(
            "work", box.live.database, lambda _: self.due, self.run, lambda: self.is_allowed
        )

    def due_in(self, seconds):
        self.due = self.clock.now() + round(seconds * 1000)

    async def run(self):
        self.runs += 1
        await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble
        self.due_in(86_400)


@pytest.fixture
def timer():
    return Timer()


@pytest.fixture
async def scheduler(box, timer):
    made = Scheduler(box.clock, timer)
    yield made
    await made.close()


@pytest.fixture
def work(box):
    return Work(box)


async def started(scheduler, *works):
    scheduler.start(*(work.job for work in works))
    await scheduler.settle()


async def fire(scheduler, clock, timer):
    """Advance the clock to the time of the timer, and fire it."""
    clock.advance(timer.seconds)
    timer.callback()
    await scheduler.settle()


async def test_the_timer_is_set_only_if_a_job_is_due_and_the_job_runs_on_time(
    scheduler, timer, work, clock
):
    await started(scheduler, work)
    assert timer.seconds is None

    work.due_in(5)
    work.job.changed()
    await scheduler.settle()
    assert (work.runs, timer.seconds) == (0, 5)

    await fire(scheduler, clock, timer)
    assert (work.runs, timer.seconds) == (1, 86_400)


async def test_a_thousand_commits_cause_one_check_a_second_later(scheduler, timer, work, box):
    await started(scheduler, work)
    for _ in range(1000):
        box.live.database.look_for_changes()

    assert (timer.seconds, timer.set_times) == (1.0, 1)
    work.due_in(0)
    await fire(scheduler, box.clock.machine, timer)
    assert work.runs == 1


@pytest.mark.parametrize(
    "trouble", [Unavailable(), OperatorError("no room"), OSError(5, "disk"), KeyError()]
)
async def test_a_failing_job_waits_twice_as_long_each_time_up_to_an_hour(
    scheduler, timer, work, clock, trouble
):
    work.due_in(0)
    work.trouble = trouble
    await started(scheduler, work)

    waits = []
    for _ in range(13):
        waits.append(timer.seconds)
        await fire(scheduler, clock, timer)
    assert waits == [*(2 << n for n in range(11)), 3600, 3600]

    work.trouble = None
    work.job.changed()  # ends the wait
    await scheduler.settle()
    assert (work.runs, timer.seconds) == (15, 86_400)
    work.trouble = trouble
    await fire(scheduler, clock, timer)
    assert timer.seconds == 2


async def test_a_job_that_is_still_due_after_it_ran_does_not_run_in_a_tight_loop(
    scheduler, timer, work
):
    work.due_in(0)
    work.due_in = lambda _: None
    await started(scheduler, work)

    assert (work.runs, timer.seconds) == (1, 2)


async def test_a_job_that_needs_the_clock_waits_until_the_clock_is_trusted(
    scheduler, timer, work, clock
):
    clock.synchronised = False
    clock.set("2036-11-21T19:00:00Z")
    work.due_in(0)
    work.job.needs_clock = True
    await started(scheduler, work)
    for _ in range(3):
        assert (work.runs, timer.seconds) == (0, 60)
        await fire(scheduler, clock, timer)

    clock.synchronised = True
    await fire(scheduler, clock, timer)
    assert work.runs == 1


async def test_a_job_that_hangs_or_raises_does_not_stop_the_others(
    scheduler, timer, work, box, clock
):
    hanging, broken = Work(box), Work(box)
    hanging.due_in(0)
    hanging.gate.clear()
    broken.job.next_due = lambda _: 1 // 0
    work.due_in(5)
    scheduler.start(hanging.job, broken.job, work.job)
    await until(lambda: timer.seconds is not None)

    clock.advance(5)
    timer.callback()
    await until(lambda: work.runs)
    assert hanging.runs == 1


async def test_a_slow_due_time_of_another_job_does_not_delay_a_job(
    scheduler, timer, work, box, clock
):
    slow = Work(box)
    slow.job.next_due = lambda _: clock.advance(3)
    work.due_in(5)
    await started(scheduler, work, slow)

    assert timer.seconds == 2


async def test_a_change_during_a_run_makes_the_job_run_again_immediately(
    scheduler, timer, work, clock
):
    work.due_in(0)
    work.gate.clear()
    scheduler.start(work.job)
    await until(lambda: work.runs)
    work.trouble = Unavailable()
    work.job.changed()
    work.gate.set()
    await until(lambda: work.runs == 2)


async def test_closing_cancels_running_jobs_and_sets_no_timer(scheduler, timer, work):
    work.due_in(0)
    work.gate.clear()
    scheduler.start(work.job)
    await until(lambda: work.runs)

    await scheduler.close()
    await scheduler.settle()
    scheduler.look()

    assert timer.seconds is None
