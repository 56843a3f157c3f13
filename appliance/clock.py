"""The box's clock: system time, time zone data, and whether the clock can be trusted.

What a wrong clock signs or expires cannot be undone. The clock is trusted if it is not before an
instant known to be past, and either the kernel calls it synchronised or nothing contradicted it
for ten minutes. Through an unconfirmed step the box counts on by the uptime, or tonight's guests
would be refused. Signatures, and what others check, use the machine's clock.
"""

import ctypes
import logging
import threading
import time
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


class Clock(Protocol):
    """A wall clock and a monotonic clock."""

    def now(self) -> int:
        """Return the current time in milliseconds since 1970, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds of a clock that never goes back, for durations and timers."""
        ...


class SystemClock:
    """The system clocks."""

    def now(self) -> int:  # noqa: D102 - promised by Clock
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:  # noqa: D102 - as above
        return time.monotonic()


class StoppedClock:
    """A clock that is moved by hand: for tests and for computing at another instant."""

    def __init__(self, instant: str = "2026-11-21T19:00:00Z") -> None:
        self.milliseconds = parse_instant(instant)
        self.seconds = 1000.0

    def now(self) -> int:  # noqa: D102 - as above
        return self.milliseconds

    def monotonic(self) -> float:  # noqa: D102 - as above
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Advance both clocks by `seconds`."""
        self.milliseconds += round(seconds * 1000)
        self.seconds += seconds

    def set(self, instant: str) -> None:
        """Set the wall clock to `instant`; the monotonic clock does not change."""
        self.milliseconds = parse_instant(instant)


def parse_instant(text: str) -> int:
    """Parse an ISO 8601 instant as milliseconds since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def format_instant(milliseconds: int) -> str:
    """Format a timestamp as ISO 8601 in UTC: `2026-11-21T19:30:00.000Z`."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{rest:03d}Z"


def optional_instant(milliseconds: int | None) -> str | None:
    """As `format_instant`; None for None."""
    return None if milliseconds is None else format_instant(milliseconds)


@dataclass(frozen=True)
class ZoneDatabase:
    """A tz database on this machine: its version and location."""

    version: str
    origin: str
    root: Traversable | None
    _read: dict[str, ZoneInfo] = field(default_factory=dict, compare=False, repr=False)

    def zone(self, name: str) -> ZoneInfo:
        """Return the time zone `name`; cached. OperatorError if this database does not have it."""
        if name not in self._read:
            self._read[name] = self._read_zone(name)
        return self._read[name]

    def _read_zone(self, name: str) -> ZoneInfo:
        try:
            if self.root is None:
                package, _, leaf = f"tzdata.zoneinfo.{name.replace('/', '.')}".rpartition(".")
                with resources.files(package).joinpath(leaf).open("rb") as file:
                    return ZoneInfo.from_file(file, key=name)
            with (self.root / name).open("rb") as file:
                return ZoneInfo.from_file(file, key=name)
        except (OSError, ValueError, ModuleNotFoundError, ZoneInfoNotFoundError):
            raise OperatorError(
                f"unknown time zone {name!r}: use a name such as Africa/Casablanca"
            ) from None


def newest_zone_database(
    system_root: Path = _SYSTEM_ZONES, own_root: Path | None = None
) -> ZoneDatabase:
    """Return the newest of the packaged, the system's and the owner's tz database.

    `own_root` is `tz/` in the data directory. A zoneinfo folder or a tzdata wheel in it updates
    the time zones without a new release.

    Python by default prefers the system's, which on many machines still has Morocco at +01.
    """
    import tzdata  # type: ignore[import-untyped]  # noqa: PLC0415 - only for its version

    found = [ZoneDatabase(tzdata.IANA_VERSION, "packaged", None)]
    found.append(ZoneDatabase(_version_of(system_root), "system", system_root))
    found += [ZoneDatabase(_version_of(root), "own", root) for root in _own_roots(own_root)]
    return max(found, key=lambda database: database.version)  # the first of equal versions


def _own_roots(folder: Path | None) -> Iterator[Traversable]:
    if folder is None or not folder.is_dir():
        return
    yield folder
    yield folder / "zoneinfo"
    for file in sorted((*folder.glob("*.whl"), *folder.glob("*.zip"))):
        try:
            yield zipfile.Path(file, "tzdata/zoneinfo/")
        except (OSError, zipfile.BadZipFile):
            continue


def _version_of(root: Traversable) -> str:
    try:
        with (root / "tzdata.zi").open(encoding="ascii") as file:
            first = file.readline().split()
    except (OSError, UnicodeDecodeError, KeyError):
        return ""
    return first[2] if first[:2] == ["#", "version"] and len(first) == 3 else ""


log = logging.getLogger(__name__)

# The release date of the bundled SQLite: a clock before it is wrong. It advances with each
# release, because each release bundles recent libraries.
BUILT_AT = parse_instant(f"{apsw.sqlite3_sourceid()[:10]}T00:00:00Z")

STEP_MS = 1_000  # smaller steps are ordinary time synchronisation
TOLERANCE_MS = 300_000  # webhook receivers tolerate the same (interface, section 6.3)
_MOMENT_MS, _TRIES = 100, 5
LONG_OFF_MS = 40 * 86_400_000  # no venue writes nothing for this long, so the clock must be wrong

# Whether the kernel reports its clock as synchronised; None if it cannot tell.
Synchronised = Callable[[], bool | None]


@dataclass(frozen=True, slots=True)
class ClockMark:
    """The stored state of the clock. `at` is the latest confirmed instant, in ms since 1970.

    `offset` is the clock minus the uptime, in ms, when the clock was last trusted; `boot` is
    the boot id of that time.
    """

    at: int
    boot: str
    offset: int


class BoxClock:
    """The box's time, and whether the machine's clock is trusted. Sets no timer, writes nothing.

    Thread-safe. While the clock is trusted, a call costs three readings and two subtractions.
    `changes` counts changes of the judgement, and `steps` how often the machine's clock was
    set; callers compare them with earlier values. `doubt` is the reason why the clock is not
    `trusted`, or a warning if it is. `stepped_far`: the clock was set by more than 300 s, or is
    far later than all stored data, and neither a time server nor a person has confirmed it, nor
    was it set back.
    """

    def __init__(
        self,
        machine: Clock,
        boot: str,
        uptime: Callable[[], int],
        synchronised: Synchronised,
        grace_ms: int,
        built_at: int = BUILT_AT,
    ) -> None:
        """`uptime` returns the ms since `boot`; the grace period starts there."""
        self.machine = machine
        self._boot = boot
        self._uptime = uptime
        self._synchronised = synchronised
        self._grace_ms = grace_ms
        self._built_at = built_at
        self._lock = threading.RLock()
        self._past, self._past_uptime = built_at, uptime()
        self._mark = 0
        self._doubted_since = 0
        self.stepped_far = False
        self.changes = self.steps = 0
        self._forget()

    def _forget(self) -> None:
        """Reset the judgement."""
        self.trusted, self.doubt = False, ""
        self._offset: int | None = None
        self._behind_since: int | None = None
        self._confirmed = False
        # The last trusted state in this boot: (offset, doubted since, stepped far).
        self._good: tuple[int, int, bool] | None = None

    def remember(
        self, mark: ClockMark | None, newest: int | None = None, *, stepped_far: bool = False
    ) -> None:
        """Restore the stored state; `newest` is the latest stored instant, in ms since 1970.

        If the clock is far later than `newest`, it may have jumped while the box was off:
        `stepped_far` is set. It is also kept if it was set when the box stopped.
        """
        with self._lock:
            self._forget()
            self.stepped_far = stepped_far
            if mark is not None:
                self._mark, self._past = mark.at, max(self._past, mark.at)
                if mark.boot == self._boot:
                    self._offset, self._good = mark.offset, (mark.offset, 0, stepped_far)
                    return
            if newest is not None and self.machine.now() > newest + LONG_OFF_MS:
                self.stepped_far = True

    def now(self) -> int:
        """Return ms since 1970, UTC: the machine's clock, or a better estimate if untrusted."""
        with self._lock:
            told, uptime = self.read()
            if not self.trusted or self.was_set_by(told, uptime):
                self.look_at(told, uptime)
            if self.trusted:
                return told
            if self._good is not None:
                return uptime + self._good[0]
            return max(told, self._past + uptime - self._past_uptime)

    def monotonic(self) -> float:
        """Return the machine's monotonic clock, which never steps."""
        return self.machine.monotonic()

    def confirm(self) -> None:
        """Clear `stepped_far`: a person has confirmed that the clock is right."""
        with self._lock:
            self.stepped_far = False
            self.changes += 1
            if self._good is not None:
                self._good = (*self._good[:2], False)

    @property
    def mark(self) -> ClockMark | None:
        """The state to store for the next start; None if the clock was never trusted.

        If the clock was set since it was last trusted, it is the state from before.
        """
        self.was_set()
        return self._good and ClockMark(self._mark, self._boot, self._good[0])

    @property
    def grace_ends_at(self) -> int:
        """The uptime, in ms, from which an unconfirmed clock is trusted."""
        since = self._doubted_since if self._behind_since is None else self._behind_since
        return since + self._grace_ms

    def was_set(self) -> bool:
        """Whether the clock was set by a second or more since the last judgement."""
        return self.was_set_by(*self.read())

    def read(self) -> tuple[int, int]:
        """Return the machine's clock and the uptime at the same moment, in ms.

        Retries if the machine stalled between the readings, which would look like a clock step.
        """
        for _ in range(_TRIES):
            before, now, after = self._uptime(), self.machine.now(), self._uptime()
            if after - before <= _MOMENT_MS:
                break
        return now, after

    def was_set_by(self, now: int, uptime: int) -> bool:
        """As `was_set`, for the result of `read`."""
        with self._lock:
            offset = now - uptime
            if self._offset is None or abs(offset - self._offset) >= STEP_MS:
                return True
            self._offset = offset
            if self.trusted and self._good is not None:
                self._good = offset, *self._good[1:]
            if self._confirmed:  # and it was not set since
                self._mark = max(self._mark, now)
            return False

    def look(self) -> None:
        """Judge the clock now."""
        self.look_at(*self.read())

    def look_at(self, now: int, uptime: int) -> None:
        """Judge the result of `read`; a caller that uses a reading must judge that reading."""
        with self._lock:
            before = self.trusted, self.doubt, self.stepped_far
            synchronised = self._synchronised() is True
            offset = now - uptime
            stepped = 0 if self._offset is None else offset - self._offset
            self._offset = offset
            if synchronised:
                self.stepped_far = False
            elif abs(stepped) > TOLERANCE_MS:
                if self._good is not None and abs(offset - self._good[0]) <= TOLERANCE_MS:
                    _, self._doubted_since, self.stepped_far = self._good
                else:
                    self._doubted_since, self.stepped_far = uptime, True
            self.trusted, self.doubt = self._judge(now, uptime, synchronised=synchronised)
            self._confirmed = self.trusted and synchronised
            if self.trusted:
                self._good = offset, self._doubted_since, self.stepped_far
            if abs(stepped) >= STEP_MS:
                log.info("clock: set by %+.3f s", stepped / 1000)
                self.steps += 1
            after = self.trusted, self.doubt, self.stepped_far
            self.changes += abs(stepped) >= STEP_MS or before != after

    def _judge(self, now: int, uptime: int, *, synchronised: bool) -> tuple[bool, str]:
        if now < self._built_at:
            return False, "it is before the day this program was built"
        behind = now < self._mark - TOLERANCE_MS
        if not (behind and synchronised):
            self._behind_since = None
        if synchronised:
            return self._judge_synchronised(now, uptime, behind=behind)
        if behind:
            return False, "it is earlier than a time that this box has recorded"
        if uptime < self.grace_ends_at:
            return False, "nothing has confirmed it since it was started or set"
        return True, "nothing confirms it: connect the box to a time server"

    def _judge_synchronised(self, now: int, uptime: int, *, behind: bool) -> tuple[bool, str]:
        """If the clock stays synchronised for the grace period, trust it over the stored mark."""
        if behind:
            if self._behind_since is None:
                self._behind_since = uptime
            if uptime < self._behind_since + self._grace_ms:
                return False, "it is earlier than a time that this box has recorded"
            self._behind_since, self._mark = None, now
            return True, "the time server has set it back and still confirms it"
        self._mark = max(self._mark, now)
        return True, ""


_TIME_ERROR, _STA_UNSYNC = 5, 0x40


def kernel_is_synchronised() -> bool | None:
    """Ask adjtimex(2), which needs no permission; None where it is not available."""
    libc = ctypes.CDLL(None)
    adjtimex = getattr(libc, "adjtimex", None)
    if adjtimex is None:
        return None
    # struct timex: modes, then longs, of which the fifth is followed by the status.
    timex = (ctypes.c_long * 64)()
    state = adjtimex(ctypes.byref(timex))
    if state < 0:
        return None
    status = ctypes.c_int.from_address(ctypes.addressof(timex) + 5 * ctypes.sizeof(ctypes.c_long))
    return state != _TIME_ERROR and not status.value & _STA_UNSYNC
