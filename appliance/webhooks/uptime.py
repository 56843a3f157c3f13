"""Time since the machine started: what retries are counted in, whatever the clock is set to."""

import asyncio
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

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
