"""Hearing of it when the clock is set, without ever looking: a timer that the kernel cancels."""

import asyncio
import contextlib
import ctypes
import os
from collections.abc import Callable

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
