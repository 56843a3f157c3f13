"""Clock steps and uptime, as reported by the kernel."""

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
# Calls the callback in the running loop each time the clock is set; returns a stop function.
WatchClockSteps = Callable[[Callable[[], None]], Callable[[], None]]

_LATEST = (1 << (8 * ctypes.sizeof(ctypes.c_long) - 1)) - 1


def watch_clock_steps(callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback` in the running loop each time the clock is set. Returns a stop function.

    Linux only. Elsewhere it does nothing, and callers must compare two clocks themselves.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "timerfd_create"):
        return lambda: None
    timer = libc.timerfd_create(_CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
    if timer < 0:
        return lambda: None
    loop = asyncio.get_running_loop()
    times = (ctypes.c_long * 4)(0, 0, _LATEST, 0)  # struct itimerspec: no interval, then the expiry

    def arm() -> None:
        flags = _TFD_TIMER_ABSTIME | _TFD_TIMER_CANCEL_ON_SET
        libc.timerfd_settime(timer, flags, ctypes.byref(times), None)

    def on_set() -> None:
        with contextlib.suppress(OSError):  # ECANCELED: the clock was set
            os.read(timer, 8)
        arm()
        callback()

    def stop() -> None:
        loop.remove_reader(timer)
        os.close(timer)

    arm()
    loop.add_reader(timer, on_set)
    return stop


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Alarm(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call."""
        ...


class Uptime(Protocol):
    """Milliseconds since boot: never steps, and continues across process restarts."""

    @property
    def boot(self) -> str:
        """The id of the current boot."""
        ...

    def milliseconds(self) -> int:
        """Return the milliseconds since boot, including suspended time."""
        ...

    def call_at(self, milliseconds: int, callback: Callable[[], None]) -> Alarm:
        """Call `callback` in the event loop when the uptime reaches `milliseconds`."""
        ...


class SystemUptime:
    """CLOCK_BOOTTIME where available.

    Elsewhere each process counts as a boot of its own, and retry times are carried over by
    the wall clock.
    """

    def __init__(self) -> None:
        self._clock = getattr(time, "CLOCK_BOOTTIME", None)
        known = self._clock is not None and _BOOT_ID.exists()
        self._boot = _BOOT_ID.read_text("ascii").strip() if known else str(uuid.uuid4())

    @property
    def boot(self) -> str:
        """The kernel's boot id, or a random UUID."""
        return self._boot

    def milliseconds(self) -> int:
        """Return the uptime in whole milliseconds, rounded down, so that no call is early."""
        if self._clock is None:
            return time.monotonic_ns() // 1_000_000
        return time.clock_gettime_ns(self._clock) // 1_000_000

    def call_at(self, milliseconds: int, callback: Callable[[], None]) -> Alarm:
        """Schedule `callback`, with the precision of the loop's timers."""
        wait = max(0, milliseconds - self.milliseconds()) / 1000
        return asyncio.get_running_loop().call_later(wait, callback)
