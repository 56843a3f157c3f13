"""Time: the machine's clock, the box's clock, timers, and time zones."""

import asyncio
import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from appliance.core.errors import OperatorError

_SYSTEM_ZONES = Path("/usr/share/zoneinfo")


MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


class Clock(Protocol):
    """A wall clock and a monotonic clock."""

    def now(self) -> int:
        """Return the current time in milliseconds since 1970, UTC."""
        ...

    def monotonic(self) -> float:
        """Return the reading, in seconds, of a clock that never goes backwards.

        Use it for durations and timers.
        """
        ...


class SystemClock:
    """The system clocks."""

    def now(self) -> int:  # noqa: D102 - documented in Clock
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:  # noqa: D102 - documented in Clock
        return time.monotonic()


_TIME_ERROR, _STA_UNSYNC = 5, 0x40


def kernel_is_synchronised() -> bool:
    """Return whether the kernel reports the clock as synchronised. False if this is unknown.

    Calls adjtimex(2), which needs no privileges.
    """
    # In struct timex, `status` comes after `modes` (padded to the size of a long) and four longs.
    timex = (ctypes.c_long * 64)()
    state = ctypes.CDLL(None).adjtimex(ctypes.byref(timex))
    status = ctypes.c_int.from_address(ctypes.addressof(timex) + 5 * ctypes.sizeof(ctypes.c_long))
    return state not in {-1, _TIME_ERROR} and not status.value & _STA_UNSYNC


FAR_AHEAD_MS = 40 * DAY_MS
_STEP_MS = 1_000  # smaller steps result from ordinary time synchronisation


class BoxClock:
    """The clock of a box: the machine's, unless that is earlier than the box's stored times.

    A clock that the kernel calls synchronised is trusted. Another one that is earlier than the
    newest believed instant counts on from that instant. One that is more than 40 days later is
    used, but not trusted: nothing may be erased or expire by it.
    """

    def __init__(self, machine: Clock, synchronised: Callable[[], bool]) -> None:
        """`machine` also gives the time of signatures, which other systems check.

        `synchronised` is `kernel_is_synchronised`.
        """
        self.machine = machine
        self.synchronised = synchronised
        self.believe(machine.now())

    def believe(self, instant: int) -> None:
        """Count on from `instant` (ms since 1970), stored or confirmed by the owner."""
        self._newest = instant, self.machine.monotonic()

    def now(self) -> int:
        """Return the box's time in ms since 1970."""
        return max(self._read())

    def monotonic(self) -> float:
        """Return the machine's monotonic clock, in seconds."""
        return self.machine.monotonic()

    def is_believed(self) -> bool:
        """Whether data may be erased or expire by this clock."""
        now, newest = self._read()
        return now <= newest + FAR_AHEAD_MS

    def _read(self) -> tuple[int, int]:
        """Return the machine's time and the newest believed instant, both in ms since 1970."""
        instant, since = self._newest
        monotonic = self.machine.monotonic()
        newest = instant + round((monotonic - since) * 1000)
        now = self.machine.now()  # last: a delay must not make the clock look set back
        if newest - _STEP_MS <= now <= newest + FAR_AHEAD_MS or self.synchronised():
            self._newest = now, monotonic
            return now, now
        return now, newest


class Cancellable(Protocol):
    """A timer that has been set."""

    def cancel(self) -> None:
        """Do not call back."""
        ...


# Calls back once after this many seconds.
CallLater = Callable[[float, Callable[[], None]], Cancellable]
_LOOK_SECONDS = 60.0


class Alarm:
    """Calls back after `seconds`, or up to a minute after the clock was set ahead by as much.

    The same holds if the machine slept: the event loop's timers notice neither. Create it in the
    running loop.
    """

    def __init__(self, clock: Clock, seconds: float, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._at, self._wall = self._loop.time() + seconds, clock.now() + round(seconds * 1000)
        self._wait()

    def cancel(self) -> None:
        """Do not call back."""
        self._timer.cancel()

    def _wait(self) -> None:
        at = min(self._at, self._loop.time() + _LOOK_SECONDS)
        self._timer = self._loop.call_at(at, self._look)

    def _look(self) -> None:
        if self._loop.time() >= self._at or self._clock.now() >= self._wall:
            self._callback()
        else:
            self._wait()


def parse_instant(text: str) -> int:
    """Parse an ISO 8601 instant as milliseconds since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def format_instant(milliseconds: int) -> str:
    """Format a timestamp as ISO 8601 in UTC: `2026-11-21T19:30:00.000Z`."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_format_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=64)  # simultaneous bookings and their webhooks have few different seconds
def _format_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def optional_instant(milliseconds: int | None) -> str | None:
    """Format a timestamp with `format_instant`, or return None for None."""
    return None if milliseconds is None else format_instant(milliseconds)


@dataclass(frozen=True)
class ZoneDatabase:
    """A tz database: its version, and the directory with its files.

    `origin` is "packaged" (the tzdata package) or "system". If `root` is None, the files are read
    from the tzdata package.
    """

    version: str
    origin: str
    root: Traversable | None
    _zones: dict[str, ZoneInfo] = field(default_factory=dict, compare=False, repr=False)

    def zone(self, name: str) -> ZoneInfo:
        """Return the time zone `name`. Raises OperatorError if this database does not have it."""
        if name not in self._zones:
            root = self.root or resources.files("tzdata.zoneinfo")
            try:
                with (root / name).open("rb") as file:
                    self._zones[name] = ZoneInfo.from_file(file, key=name)
            except (OSError, ValueError, ZoneInfoNotFoundError):
                raise OperatorError(
                    f"unknown time zone {name!r}. Use a name such as Africa/Casablanca."
                ) from None
        return self._zones[name]


def newest_zone_database() -> ZoneDatabase:
    """Return the newer tz database: the packaged one or the system's.

    By default, Python would use the system's database, which on many machines still has Morocco at
    UTC+01.
    """
    import tzdata  # type: ignore[import-untyped]  # noqa: PLC0415 - used only for its version

    packaged = ZoneDatabase(tzdata.IANA_VERSION, "packaged", None)
    system = ZoneDatabase(_version_of(_SYSTEM_ZONES), "system", _SYSTEM_ZONES)
    # If versions are equal, `max` returns the first.
    return max(packaged, system, key=lambda database: database.version)


def _version_of(root: Traversable) -> str:
    try:
        with (root / "tzdata.zi").open(encoding="ascii") as file:
            first = file.readline().split()
    except (OSError, UnicodeDecodeError, KeyError):
        return ""
    return first[2] if first[:2] == ["#", "version"] and len(first) == 3 else ""
