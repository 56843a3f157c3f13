"""The clock, venue time, and which tz database is in use."""

import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from appliance.errors import Trouble

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
        """The rules of `name`, read once; Trouble when this database does not know it."""
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
            raise Trouble(
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
