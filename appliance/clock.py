"""The box's clock: the time, venue time, and whether the clock can be trusted."""

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
    """Two clocks: one that tells the time, one that measures durations."""

    def now(self) -> int:
        """Milliseconds since 1970 in UTC, as the box believes."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, for durations and timers."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> int:  # noqa: D102 - promised by Clock
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:  # noqa: D102 - as above
        return time.monotonic()


class StoppedClock:
    """A clock that its owner moves: for tests and for reasoning about another instant."""

    def __init__(self, instant: str = "2026-11-21T19:00:00Z") -> None:
        self.milliseconds = parse_instant(instant)
        self.seconds = 1000.0

    def now(self) -> int:  # noqa: D102 - as above
        return self.milliseconds

    def monotonic(self) -> float:  # noqa: D102 - as above
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass on both clocks."""
        self.milliseconds += round(seconds * 1000)
        self.seconds += seconds

    def set(self, instant: str) -> None:
        """Step the wall clock to `instant`; the monotonic one does not notice."""
        self.milliseconds = parse_instant(instant)


def parse_instant(text: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 instant."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def format_instant(milliseconds: int) -> str:
    """A timestamp of the interface: ISO 8601 in UTC, `2026-11-21T19:30:00.000Z`."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{rest:03d}Z"


def optional_instant(milliseconds: int | None) -> str | None:
    """The same of what may not have happened."""
    return None if milliseconds is None else format_instant(milliseconds)


@dataclass(frozen=True)
class ZoneDatabase:
    """One tz database that this machine offers: its version and where it lies."""

    version: str
    origin: str
    root: Traversable | None
    _read: dict[str, ZoneInfo] = field(default_factory=dict, compare=False, repr=False)

    def zone(self, name: str) -> ZoneInfo:
        """The rules of `name`, read once; OperatorError when this database does not know it."""
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
    """The newest of the packaged, the system's and the owner's database.

    `own_root` is `tz/` in the data directory: a zoneinfo folder, or the file of a newer tzdata
    package (a wheel) in it, updates a box without a new program.

    Python alone would prefer the system's, which on many machines still has Morocco at +01.
    """
    import tzdata  # type: ignore[import-untyped]  # noqa: PLC0415 - for its version alone

    found = [ZoneDatabase(tzdata.IANA_VERSION, "packaged", None)]
    found.append(ZoneDatabase(_version_of(system_root), "system", system_root))
    found += [ZoneDatabase(_version_of(root), "own", root) for root in _own_roots(own_root)]
    return max(found, key=lambda database: database.version)  # of equals the first


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

# No box was built before the SQLite that is inside it: a clock that says so is wrong. So it rises
# by itself with each release, whose libraries are always of the latest months.
BUILT_AT = parse_instant(f"{apsw.sqlite3_sourceid()[:10]}T00:00:00Z")

STEP_MS = 1_000  # less is the ordinary work of whoever keeps the clock right
TOLERANCE_MS = 300_000  # what receivers tolerate too (interface, section 6.3)
_MOMENT_MS, _TRIES = 100, 5
LONG_OFF_MS = 40 * 86_400_000  # no house writes nothing for so long: rather the clock is wrong

# Whether the kernel calls its clock synchronised; None when it cannot be asked.
Synchronised = Callable[[], bool | None]


@dataclass(frozen=True, slots=True)
class ClockMark:
    """What a box keeps of its clock: `at` is the latest instant that was certainly past.

    `offset` is the clock minus the uptime, in ms, when it was trusted last, in the boot of that
    name.
    """

    at: int
    boot: str
    offset: int


class BoxClock:
    """One judge of the machine's clock, and the box's own time. Sets no timer, writes nothing.

    Any thread may ask. Trusted, a question costs three readings and two subtractions.
    `changes` counts the judgements that differ from the one before, `steps` how often the
    machine's clock was set: whoever acts by them compares. `doubt` is why the clock is not
    `trusted`, or what to warn of if it is. `stepped_far`: it was set by more than 300 s, or lies
    far beyond all that was ever written; until a time server or a person confirms it, or it is
    set back to where it was.
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
        """`uptime` counts the ms since `boot`; the grace counts from there."""
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
        """Judge anew."""
        self.trusted, self.doubt = False, ""
        self._offset: int | None = None
        self._behind_since: int | None = None
        self._confirmed = False
        # The offset that was trusted last in this boot, with what was held of it then.
        self._good: tuple[int, int, bool] | None = None

    def remember(
        self, mark: ClockMark | None, newest: int | None = None, *, stepped_far: bool = False
    ) -> None:
        """Begin with what was written before; `newest` is the latest instant among it.

        A clock far beyond that may have leapt while the box was off: nothing expires by it. Nor
        by one that had `stepped_far` when the box stopped: what was written since proves nothing.
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
        """Milliseconds since 1970 in UTC: the machine's word, or what the box knows better."""
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
        """The machine's: it never steps."""
        return self.machine.monotonic()

    def confirm(self) -> None:
        """Somebody says that the clock is right as it stands: it has not stepped far."""
        with self._lock:
            self.stepped_far = False
            self.changes += 1
            if self._good is not None:
                self._good = (*self._good[:2], False)

    @property
    def mark(self) -> ClockMark | None:
        """What should be written, to be remembered after the next start.

        Of a clock that was set since it was trusted, what it was before; None of one that never
        was trusted.
        """
        self.was_set()
        return self._good and ClockMark(self._mark, self._boot, self._good[0])

    @property
    def grace_ends_at(self) -> int:
        """The uptime at which a clock that nobody contradicts is believed."""
        since = self._doubted_since if self._behind_since is None else self._behind_since
        return since + self._grace_ms

    def was_set(self) -> bool:
        """Whether the clock was set since the latest judgement, by a second or more."""
        return self.was_set_by(*self.read())

    def read(self) -> tuple[int, int]:
        """The machine's clock and the uptime of one moment, in ms.

        A machine that stands still between two readings, for seconds when its disk is slow,
        would make a clock look set that nobody touched.
        """
        for _ in range(_TRIES):
            before, now, after = self._uptime(), self.machine.now(), self._uptime()
            if after - before <= _MOMENT_MS:
                break
        return now, after

    def was_set_by(self, now: int, uptime: int) -> bool:
        """The same, of what `read` told."""
        with self._lock:
            offset = now - uptime
            if self._offset is None or abs(offset - self._offset) >= STEP_MS:
                return True
            self._offset = offset
            if self.trusted and self._good is not None:
                self._good = offset, *self._good[1:]
            if self._confirmed:  # and it only went on since
                self._mark = max(self._mark, now)
            return False

    def look(self) -> None:
        """Judge the clock now."""
        self.look_at(*self.read())

    def look_at(self, now: int, uptime: int) -> None:
        """Judge what `read` told: whoever goes on with that reading must have it judged."""
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
            return False, "it is before what this box has already lived through"
        if uptime < self.grace_ends_at:
            return False, "nothing has confirmed it since it was started or set"
        return True, "nothing confirms it: connect the box to a time server"

    def _judge_synchronised(self, now: int, uptime: int, *, behind: bool) -> tuple[bool, str]:
        """A time server that insists for the whole grace is right: the mark was wrong."""
        if behind:
            if self._behind_since is None:
                self._behind_since = uptime
            if uptime < self._behind_since + self._grace_ms:
                return False, "it is before what this box has already lived through"
            self._behind_since, self._mark = None, now
            return True, "the time server has set it back, and insists"
        self._mark = max(self._mark, now)
        return True, ""


_TIME_ERROR, _STA_UNSYNC = 5, 0x40


def kernel_is_synchronised() -> bool | None:
    """What adjtimex(2) says, which needs no permission; None where there is none."""
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
