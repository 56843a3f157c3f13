"""Time: the system clock, time zones, and whether the system clock can be trusted.

A wrong clock causes damage that cannot be undone: data expires early and receivers refuse
signatures. The system clock is trusted if it is no earlier than a time known to be in the past,
and either the kernel reports it as synchronised or nothing has contradicted it for ten minutes.
After an unconfirmed clock step, the box derives the time from the uptime, because with a wrong time
it would refuse tonight's guests. Timestamps of signatures, and others that other systems verify,
use the system clock.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import apsw

from appliance.core.errors import OperatorError

_SYSTEM_ZONES = Path("/usr/share/zoneinfo")


MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


class Clock(Protocol):
    """A wall clock and a monotonic clock."""

    def now(self) -> int:
        """Return the current time in milliseconds since 1970, UTC."""
        ...

    def monotonic(self) -> float:
        """Return the time in seconds of a clock that never goes back, for durations and timers."""
        ...


class SystemClock:
    """The system clocks."""

    def now(self) -> int:  # noqa: D102 - documented in Clock
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:  # noqa: D102 - documented in Clock
        return time.monotonic()


def parse_instant(text: str) -> int:
    """Parse an ISO 8601 instant as milliseconds since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def format_instant(milliseconds: int) -> str:
    """Format a timestamp as ISO 8601 in UTC: `2026-11-21T19:30:00.000Z`."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{rest:03d}Z"


def optional_instant(milliseconds: int | None) -> str | None:
    """Format a timestamp with `format_instant`, or return None for None."""
    return None if milliseconds is None else format_instant(milliseconds)


@dataclass(frozen=True)
class ZoneDatabase:
    """A tz database: its version, and the directory with its files.

    `origin` is "packaged" (the tzdata package), "system" or "own" (files that the owner has
    installed). If `root` is None, the files are read from the tzdata package.
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


def newest_zone_database(
    system_root: Path = _SYSTEM_ZONES, own_root: Path | None = None
) -> ZoneDatabase:
    """Return the newest tz database: the packaged one, the system's or the owner's.

    `own_root` is `tz/` in the data directory: a zoneinfo folder or a tzdata wheel there updates
    the time zones without a new release of venuebox. By default, Python would use the system's
    database, which on many machines still has Morocco at UTC+01.
    """
    import tzdata  # type: ignore[import-untyped]  # noqa: PLC0415 - used only for its version

    found = [ZoneDatabase(tzdata.IANA_VERSION, "packaged", None)]
    found.append(ZoneDatabase(_version_of(system_root), "system", system_root))
    found += [ZoneDatabase(_version_of(root), "own", root) for root in _own_roots(own_root)]
    # If versions are equal, `max` returns the first.
    return max(found, key=lambda database: database.version)


def _own_roots(folder: Path | None) -> Iterator[Traversable]:
    if folder is None or not folder.is_dir():
        return
    yield folder
    yield folder / "zoneinfo"
    for file in sorted((*folder.glob("*.whl"), *folder.glob("*.zip"))):
        with contextlib.suppress(OSError, zipfile.BadZipFile):
            yield zipfile.Path(file, "tzdata/zoneinfo/")


def _version_of(root: Traversable) -> str:
    try:
        with (root / "tzdata.zi").open(encoding="ascii") as file:
            first = file.readline().split()
    except (OSError, UnicodeDecodeError, KeyError):
        return ""
    return first[2] if first[:2] == ["#", "version"] and len(first) == 3 else ""


log = logging.getLogger(__name__)

# The release date of the bundled SQLite. A clock that shows an earlier time is wrong.
BUILT_AT = parse_instant(f"{apsw.sqlite3_sourceid()[:10]}T00:00:00Z")

_STEP_MS = 1_000  # smaller steps result from ordinary time synchronisation
_TOLERANCE_MS = 300_000  # clock difference that receivers tolerate (interface, section 6.3)
_READING_MS, _READINGS = 100, 5
_LONG_OFF_MS = 40 * DAY_MS  # a running box stores a timestamp more often than this

# Returns whether the kernel reports the clock as synchronised, or None if this is unknown.
Synchronised = Callable[[], bool | None]


@dataclass(frozen=True, slots=True)
class ClockMark:
    """The stored state of the clock.

    `at` is the latest confirmed instant, in ms since 1970. `offset` is the clock minus the uptime,
    in ms, when the clock was last trusted. `boot` is the id of the boot at that time.
    """

    at: int
    boot: str
    offset: int


class BoxClock:
    """Provides the box's time, and assesses whether the system clock can be trusted.

    Thread-safe. Sets no timers and stores nothing. If `trusted` is False, `doubt` is the reason;
    otherwise, `doubt` is a warning or empty. `stepped_far` is True if the clock stepped by more
    than 300 s, or is far later than all stored data, and neither a time server nor an operator has
    confirmed it. `steps` counts clock steps. `changes` is incremented whenever an assessment or an
    operator changes one of these values.
    """

    def __init__(
        self,
        machine: Clock,
        boot: str,
        uptime: Callable[[], int],
        synchronised: Synchronised,
        grace_ms: int,
    ) -> None:
        """`uptime` returns the ms since the boot with the id `boot`.

        The first grace period starts at uptime 0.
        """
        self.machine = machine
        self._boot = boot
        self._uptime = uptime
        self._synchronised = synchronised
        self.grace_ms = grace_ms
        self._lock = threading.RLock()
        self._past, self._past_uptime = BUILT_AT, uptime()
        self._mark = 0
        self._doubted_since = 0
        self.stepped_far = False
        self.changes = self.steps = 0
        self._reset()

    def _reset(self) -> None:
        self.trusted, self.doubt = False, ""
        self._offset: int | None = None
        self._behind_since: int | None = None
        self._confirmed = False
        # The values of `_offset`, `_doubted_since` and `stepped_far` when the clock was last
        # trusted, or None if it has not been trusted since the machine booted.
        self._good: tuple[int, int, bool] | None = None

    def remember(
        self, mark: ClockMark | None, newest: int | None = None, *, stepped_far: bool = False
    ) -> None:
        """Restore the stored state.

        `newest` is the latest timestamp in the database, in ms since 1970. The argument
        `stepped_far` is the value from before the restart. Unless `mark` is from the current boot,
        the attribute `stepped_far` is also set if the clock is over 40 days later than `newest`,
        because the clock may have stepped while the box was off.
        """
        with self._lock:
            self._reset()
            self.stepped_far = stepped_far
            if mark is not None:
                self._mark, self._past = mark.at, max(self._past, mark.at)
                if mark.boot == self._boot:
                    self._offset, self._good = mark.offset, (mark.offset, 0, stepped_far)
                    return
            if newest is not None and self.machine.now() > newest + _LONG_OFF_MS:
                self.stepped_far = True

    def now(self) -> int:
        """Return the time in ms since 1970. It is an estimate if the system clock is untrusted."""
        with self._lock:
            now, uptime = self.read()
            if not self.trusted or self.was_set_by(now, uptime):
                self.assess_at(now, uptime)
            if self.trusted:
                return now
            if self._good is not None:
                return uptime + self._good[0]
            return max(now, self._past + uptime - self._past_uptime)

    def monotonic(self) -> float:
        """Return the system's monotonic clock, which never steps."""
        return self.machine.monotonic()

    def confirm(self) -> None:
        """Clear `stepped_far`, because an operator has confirmed that the clock is right."""
        with self._lock:
            self.stepped_far = False
            self.changes += 1
            if self._good is not None:
                self._good = (*self._good[:2], False)

    @property
    def mark(self) -> ClockMark | None:
        """The state to store for the next start; None if the clock was never trusted.

        If the clock was set since it was last trusted, this is the earlier, trusted state.
        """
        self.was_set()
        return self._good and ClockMark(self._mark, self._boot, self._good[0])

    @property
    def grace_ends_at(self) -> int:
        """The uptime (ms) at which the grace period ends."""
        since = self._doubted_since if self._behind_since is None else self._behind_since
        return since + self.grace_ms

    def read(self) -> tuple[int, int]:
        """Return the system clock and the uptime at the same moment, in ms.

        If this takes more than 100 ms, because the machine stalled, both are read again. Otherwise,
        the delay would look like a clock step.
        """
        for _ in range(_READINGS):
            before, now, after = self._uptime(), self.machine.now(), self._uptime()
            if after - before <= _READING_MS:
                break
        return now, after

    def was_set(self) -> bool:
        """Whether the clock has stepped by a second or more since it was last assessed."""
        return self.was_set_by(*self.read())

    def was_set_by(self, now: int, uptime: int) -> bool:
        """Like `was_set`, but with the two values from an earlier call to `read`."""
        with self._lock:
            offset = now - uptime
            if self._offset is None or abs(offset - self._offset) >= _STEP_MS:
                return True
            self._offset = offset
            if self.trusted and self._good is not None:
                self._good = offset, *self._good[1:]
            if self._confirmed:  # by a time server, and the clock has not stepped since
                self._mark = max(self._mark, now)
            return False

    def assess(self) -> None:
        """Update `trusted`, `doubt` and `stepped_far`."""
        self.assess_at(*self.read())

    def assess_at(self, now: int, uptime: int) -> None:
        """Update `trusted`, `doubt` and `stepped_far` from a result of `read`."""
        with self._lock:
            before = self.trusted, self.doubt, self.stepped_far
            synchronised = self._synchronised() is True
            offset = now - uptime
            stepped = 0 if self._offset is None else offset - self._offset
            self._offset = offset
            if synchronised:
                self.stepped_far = False
            elif abs(stepped) > _TOLERANCE_MS:
                if self._good is not None and abs(offset - self._good[0]) <= _TOLERANCE_MS:
                    _, self._doubted_since, self.stepped_far = self._good
                else:
                    self._doubted_since, self.stepped_far = uptime, True
            self.trusted, self.doubt = self._decide(now, uptime, synchronised=synchronised)
            self._confirmed = self.trusted and synchronised
            if self.trusted:
                self._good = offset, self._doubted_since, self.stepped_far
            was_stepped = abs(stepped) >= _STEP_MS
            if was_stepped:
                log.info("clock: stepped by %+.3f s", stepped / 1000)
                self.steps += 1
            self.changes += was_stepped or before != (self.trusted, self.doubt, self.stepped_far)

    def _decide(self, now: int, uptime: int, *, synchronised: bool) -> tuple[bool, str]:
        """Return the new values of `trusted` and `doubt`.

        A clock that is earlier than the stored mark is trusted only after a time server has
        confirmed it for the whole grace period.
        """
        if now < BUILT_AT:
            return False, "it is earlier than the release date of this program"
        behind = now < self._mark - _TOLERANCE_MS
        if not (behind and synchronised):
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = uptime
        if behind and not (synchronised and uptime >= self.grace_ends_at):
            return False, "it is earlier than a time that this box has recorded"
        if synchronised and behind:
            self._behind_since, self._mark = None, now
            return True, "the time server has set it back and still confirms it"
        if synchronised:
            self._mark = max(self._mark, now)
            return True, ""
        if uptime < self.grace_ends_at:
            return False, "no time server has confirmed it since it was set or the machine started"
        return True, "nothing confirms it. Connect the box to a time server."


_TIME_ERROR, _STA_UNSYNC = 5, 0x40


def kernel_is_synchronised() -> bool | None:
    """Return whether the kernel reports the clock as synchronised, or None if this is unknown.

    Calls adjtimex(2), which needs no privileges.
    """
    libc = ctypes.CDLL(None)
    adjtimex = getattr(libc, "adjtimex", None)
    if adjtimex is None:
        return None
    # In struct timex, `status` comes after `modes` (padded to the size of a long) and four longs.
    timex = (ctypes.c_long * 64)()
    state = adjtimex(ctypes.byref(timex))
    if state < 0:
        return None
    status = ctypes.c_int.from_address(ctypes.addressof(timex) + 5 * ctypes.sizeof(ctypes.c_long))
    return state != _TIME_ERROR and not status.value & _STA_UNSYNC


_CLOCK_REALTIME = 0
_TFD_TIMER_ABSTIME, _TFD_TIMER_CANCEL_ON_SET = 1, 2
# Calls the callback in the running loop each time the clock is set. Returns a function that ends
# these calls.
WatchClockSteps = Callable[[Callable[[], None]], Callable[[], None]]

_LATEST = (1 << (8 * ctypes.sizeof(ctypes.c_long) - 1)) - 1


def watch_clock_steps(callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback` in the running loop each time the clock is set.

    Returns a function that ends these calls. On systems other than Linux, `callback` is never
    called, so users of this function must also compare the clock with the uptime.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "timerfd_create"):
        return lambda: None
    timer = libc.timerfd_create(_CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
    if timer < 0:
        return lambda: None
    loop = asyncio.get_running_loop()
    # A struct itimerspec with no interval and the latest possible expiry.
    times = (ctypes.c_long * 4)(0, 0, _LATEST, 0)

    def arm() -> None:
        flags = _TFD_TIMER_ABSTIME | _TFD_TIMER_CANCEL_ON_SET
        libc.timerfd_settime(timer, flags, ctypes.byref(times), None)

    def on_set() -> None:
        with contextlib.suppress(OSError):  # ECANCELED means that the clock was set
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
    """The time since the machine booted. `boot` is the id of that boot.

    It never steps, and it continues when the process restarts.
    """

    boot: str

    def milliseconds(self) -> int:
        """Return the milliseconds since boot, including suspended time."""
        ...

    def call_at(self, milliseconds: int, callback: Callable[[], None]) -> Alarm:
        """Call `callback` in the event loop when the uptime reaches `milliseconds`."""
        ...


class SystemUptime:
    """The uptime from CLOCK_BOOTTIME, with the kernel's boot id.

    On systems without them, each process uses a random boot id, so that a restart of the process
    looks like a reboot of the machine.
    """

    def __init__(self) -> None:
        self._clock = getattr(time, "CLOCK_BOOTTIME", None)
        known = self._clock is not None and _BOOT_ID.exists()
        self.boot = _BOOT_ID.read_text("ascii").strip() if known else str(uuid.uuid4())

    def milliseconds(self) -> int:
        """Return the uptime, rounded down so that no callback runs early."""
        if self._clock is None:
            return time.monotonic_ns() // 1_000_000
        return time.clock_gettime_ns(self._clock) // 1_000_000

    def call_at(self, milliseconds: int, callback: Callable[[], None]) -> Alarm:
        """Schedule `callback` on the event loop's timer."""
        wait = max(0, milliseconds - self.milliseconds()) / 1000
        return asyncio.get_running_loop().call_later(wait, callback)
