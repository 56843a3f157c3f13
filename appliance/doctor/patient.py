"""What is examined: the box's directory, its settings, and the machine around it."""

import ctypes
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from appliance.clock import Clock, ZoneDatabase
from appliance.data_directory import DataDirectory
from appliance.environment import EnvironmentName
from appliance.errors import Trouble
from appliance.settings import Settings
from appliance.store.connection import Reader
from appliance.store.examination import opened_for_reading, read_schema
from appliance.store.migrate import list_migrations
from appliance.store.unusable import is_unopenable

HEALTH_DEADLINE = 2.0
_TIMEX_BYTES = 1024  # struct timex has 208 at most; zeroed, it asks and changes nothing


class NotExamined(Exception):
    """Another check tells why this one has nothing to look at."""


class Unopenable(NotExamined):
    """A database is there, and SQLite cannot make what it needs beside it."""


def ask_health(url: str) -> int | None:
    """The status that the box on this machine answers, or None when nothing does in time."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=HEALTH_DEADLINE) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return None


def ask_clock_state() -> int | None:
    """What adjtimex(2) answers: 5 when nothing keeps the clock right; None where it is unknown."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        state = int(libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state


def find_device(path: Path) -> int:
    """The number of the volume that holds it."""
    return path.stat().st_dev


@dataclass(frozen=True, slots=True)
class Machine:
    """The outside that checks ask. Tests hand in another."""

    statvfs: Callable[[Path], os.statvfs_result] = os.statvfs
    device: Callable[[Path], int] = find_device
    proc: Path = Path("/proc")
    clock_state: Callable[[], int | None] = ask_clock_state
    ask: Callable[[str], int | None] = ask_health


@dataclass(frozen=True, slots=True)
class Patient:
    """A box, running or not. `settings` is the sentence about them when they cannot be read.

    `online` allows checks that reach out of the house.
    """

    directory: DataDirectory
    settings: Settings | str
    clock: Clock
    zones: ZoneDatabase
    online: bool = False
    machine: Machine = Machine()

    @property
    def runs(self) -> bool:
        """Whether a running box holds the other end of its pipe. Nothing is written into it."""
        try:
            os.close(os.open(self.directory.poke, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    def known_settings(self) -> Settings:
        """The settings; NotExamined when they cannot be read."""
        if isinstance(self.settings, str):
            raise NotExamined
        return self.settings

    @contextmanager
    def file(self, environment: EnvironmentName) -> Iterator[Reader]:
        """The database of an environment as it is, read only. NotExamined when it is missing.

        Unopenable, which is NotExamined too, where nothing can be written beside it.
        """
        path = self.directory.database(environment)
        if not path.exists():
            raise NotExamined
        try:
            with opened_for_reading(path, self.clock, self.zones) as reader:
                yield reader
        except apsw.Error as error:
            if is_unopenable(error):
                raise Unopenable from None
            raise

    @contextmanager
    def rows(self, environment: EnvironmentName) -> Iterator[Reader]:
        """The same, for questions about rows: NotExamined where the schema is another."""
        with self.file(environment) as reader:
            if read_schema(reader) != list_migrations()[-1][0]:
                raise NotExamined
            yield reader

    def key(self) -> bytes:
        """The master key; NotExamined when it cannot be used."""
        try:
            return self.directory.master_key()
        except Trouble:
            raise NotExamined from None
