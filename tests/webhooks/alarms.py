"""A timer for tests: time passes only when the test says so."""

import asyncio

from tests.waiting import until


class ManualTimer:
    """A timer that goes off only when the test says so, to be passed as `call_later`."""

    def __init__(self, clock):
        self.alarms = {}
        self.alarms_set = 0
        self._clock = clock

    def __call__(self, seconds, callback):
        self.alarms_set += 1
        at = self._clock.monotonic() + seconds, self._clock.now() + round(seconds * 1000)
        alarm = _Alarm(self.alarms, self.alarms_set)
        self.alarms[alarm.number] = (*at, callback)
        if seconds <= 0:
            asyncio.get_running_loop().call_soon(self.look)
        return alarm

    def advance(self, seconds):
        """Advance both clocks, and call the alarms that became due."""
        self._clock.advance(seconds)
        self.look()

    def look(self):
        """Call the alarms that are due by either clock, as happens every minute."""
        for number, (at, wall, callback) in list(self.alarms.items()):
            if self._clock.monotonic() >= at - 1e-6 or self._clock.now() >= wall:
                self.alarms.pop(number, None)
                callback()

    @property
    def next_alarm(self):
        """Seconds until the earliest alarm, or None."""
        earliest = min((at for at, _, _ in self.alarms.values()), default=None)
        return None if earliest is None else earliest - self._clock.monotonic()


class _Alarm:
    def __init__(self, alarms, number):
        self.number = number
        self._alarms = alarms

    def cancel(self):
        self._alarms.pop(self.number, None)


def _rings_in(timer, seconds):
    return timer.next_alarm is not None and abs(timer.next_alarm - seconds) < 0.001


async def alarm_is(timer, seconds):
    await until(lambda: _rings_in(timer, seconds), f"an alarm in {seconds} s")
