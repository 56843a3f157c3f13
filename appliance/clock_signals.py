"""What the kernel says about time: steps of the clock, and time since the machine started."""

import asyncio
import contextlib
import ctypes
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

_CLOCK_REALTIME = 0
_TFD_TIMER_ABSTIME, _TFD_TIMER_CANCEL_ON_SET = 1, 2
# Calls back in the running loop each time the clock is set; what it returns stops that.
WatchClockSteps = Callable[[Callable[[], None]], Callable[[], None]]

_LATEST = (1 << (8 * ctypes.sizeof(ctypes.c_long) - 1)) - 1


def watch_clock_steps(callback: Callable[[], None]) -> Callable[[], None]:
    """Call back in the running loop each time the clock is set; the result stops that.

    Linux only. Elsewhere nobody calls, and who needs to know compares two clocks by himself.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "timerfd_create"):
        return lambda: None
    timer = libc.timerfd_create(_CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
    if timer < 0:
        return lambda: None
    loop = asyncio.get_running_loop()
    times = (ctypes.c_long * 4)(0, 0, _LATEST, 0)  # struct itimerspec: no interval, and when

    def arm() -> None:
        flags = _TFD_TIMER_ABSTIME | _TFD_TIMER_CANCEL_ON_SET
        libc.timerfd_settime(timer, flags, ctypes.byref(times), None)

    def on_set() -> None:
        with contextlib.suppress(OSError):  # ECANCELED: this is the news
            os.read(timer, 8)
        arm()
        callback()

    def stop() -> None:
        loop.remove_reader(timer)
        os.close(timer)

    arm()
    try:
        loop.add_reader(timer, on_set)
    except NotImplementedError:
        os.close(timer)
        return lambda: None
    return stop


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Alarm(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """Make it not come."""
        ...


class Uptime(Protocol):
    """A count of milliseconds that never steps and survives a restart of the process."""

    @property
    def boot(self) -> str:
        """Which start of the machine the count belongs to."""
        ...

    def milliseconds(self) -> int:
        """Milliseconds since that start, time asleep included."""
        ...

    def call_at(self, milliseconds: int, callback: Callable[[], None]) -> Alarm:
        """Call back in the event loop once the count reaches `milliseconds`."""
        ...


class SystemUptime:
    """CLOCK_BOOTTIME where there is one.

    Elsewhere each process counts as a start of its own, and retries are carried over by
    the wall clock.
    """

    def __init__(self) -> None:
        self._clock = getattr(time, "CLOCK_BOOTTIME", None)
        known = self._clock is not None and _BOOT_ID.exists()
        self._boot = _BOOT_ID.read_text("ascii").strip() if known else str(uuid.uuid4())

    @property
    def boot(self) -> str:
        """The kernel's own name of this start."""
        return self._boot

    def milliseconds(self) -> int:
        """As promised, in whole milliseconds, rounded down: nothing is due early."""
        if self._clock is None:
            return time.monotonic_ns() // 1_000_000
        return time.clock_gettime_ns(self._clock) // 1_000_000

    def call_at(self, milliseconds: int, callback: Callable[[], None]) -> Alarm:
        """As promised, to the precision of the loop's timers."""
        wait = max(0, milliseconds - self.milliseconds()) / 1000
        return asyncio.get_running_loop().call_later(wait, callback)
