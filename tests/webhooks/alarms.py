"""A manual uptime for tests, and the alarms that the dispatcher sets on it."""

import asyncio


class ManualUptime:
    """An uptime that changes only when the test calls `advance`."""

    def __init__(self, clock, boot="first boot", milliseconds=1_000_000):
        self.boot = boot
        self.now = milliseconds
        self.alarms = {}
        self.alarms_set = 0
        self._clock = clock

    def milliseconds(self):
        return self.now

    def call_at(self, milliseconds, callback):
        self.alarms_set += 1
        alarm = _Alarm(self.alarms, self.alarms_set)
        self.alarms[alarm.number] = (milliseconds, callback)
        if milliseconds <= self.now:
            asyncio.get_running_loop().call_soon(self.advance, 0)
        return alarm

    def advance(self, seconds):
        """Advance all clocks, and call the alarms that became due."""
        self.now += round(seconds * 1000)
        self._clock.advance(seconds)
        for number, (at, callback) in list(self.alarms.items()):
            if at <= self.now and self.alarms.pop(number, None):
                callback()

    @property
    def next_alarm(self):
        """Seconds until the earliest alarm, or None."""
        earliest = min((at for at, _ in self.alarms.values()), default=None)
        return None if earliest is None else (earliest - self.now) / 1000


class _Alarm:
    def __init__(self, alarms, number):
        self.number = number
        self._alarms = alarms

    def cancel(self):
        self._alarms.pop(self.number, None)


def _rings_in(uptime, seconds):
    return uptime.next_alarm is not None and abs(uptime.next_alarm - seconds) < 0.001


async def alarm_is(uptime, seconds):
    async with asyncio.timeout(60):
        while not _rings_in(uptime, seconds):  # noqa: ASYNC110 - a commit sets the alarm
            await asyncio.sleep(0.002)
