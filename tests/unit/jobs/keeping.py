"""An environment whose jobs run by a timer and a clock that the test controls."""

import asyncio

from appliance.clock import parse_instant
from appliance.jobs.reservation_states import make_reservation_jobs
from appliance.reservations.create import enter_by_staff, enter_for_guest
from appliance.reservations.rows import get_reservation
from appliance.scheduler import Scheduler
from tests.builders import a_booking

END_OF_TONIGHT = "2026-11-22T06:00:00.000Z"


class Timer:
    """A replacement for `call_later`, controlled by the test."""

    def __init__(self):
        self.seconds = None
        self.callback = None
        self.set_times = 0

    def __call__(self, seconds, callback):
        self.seconds, self.callback = seconds, callback
        self.set_times += 1
        return self

    def cancel(self):
        self.seconds = self.callback = None


class World:
    """An environment, its clock and its jobs. The test fires the timer of their scheduler."""

    def __init__(self, environment, clock):
        self.database, self.clock, self.timer = environment.database, clock, Timer()
        self.scheduler = Scheduler(self.database.clock, self.timer)
        self.chores = make_reservation_jobs(environment)

    async def start(self):
        self.scheduler.start(self.chores)
        await self.scheduler.settle()

    async def wait_for_the_timer(self):
        """Advance the clock to the time of the timer, and fire it."""
        seconds, callback = self.timer.seconds, self.timer.callback
        self.clock.advance(seconds)
        self.timer.cancel()
        callback()
        await self.scheduler.settle()

    async def pass_until(self, instant):
        """Fire the timer whenever it is due until `instant`."""
        until = parse_instant(instant)
        while (
            self.timer.seconds is not None and self.clock.now() + self.timer.seconds * 1000 <= until
        ):
            await self.wait_for_the_timer()

    async def enter(self, **changes):
        reservation = await self.database.write(
            enter_by_staff, a_booking(**changes), actor="staff:1"
        )
        await asyncio.sleep(0)
        return reservation.id

    async def request(self, **changes):
        await self.database.write(lambda tx: tx.execute("UPDATE venue SET auto_confirm = 0"))
        reservation = await self.database.write(enter_for_guest, a_booking(**changes))
        await asyncio.sleep(0)
        return reservation.id

    async def get(self, reservation_id):
        return await self.database.read(get_reservation, reservation_id)
