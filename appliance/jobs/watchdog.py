"""The watchdog of the event loop, and the disk reserve for a full disk.

The watchdog needs no systemd: a thread checks that the loop turns while it has work. systemd is
notified from the loop, so it hears nothing when the loop is stuck. Only check-ins may use the
disk reserve. While the disk is full nothing else is taken; when there is room again, the reserve
is made again first.
"""

import asyncio
import errno
import faulthandler
import logging
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from appliance.box import Box
from appliance.core.data_directory import DataDirectory
from appliance.core.files import atomic_file
from appliance.door.check_in import check_in, check_in_by_staff, undo_by_staff, undo_check_in
from appliance.door.offline_sync import sync_scans

PATIENCE = 30.0  # seconds (docs/promises.md, G10)
_LOOK = 1.0  # seconds between checks of a busy loop
_MOMENT = 0.01
_STATUS = 70  # sysexits.h: EX_SOFTWARE


class Lateness:
    """Measures the latency of the event loop."""

    async def measure(self) -> float:
        """Return how much longer than 10 ms a sleep of 10 ms takes, in seconds."""
        begun = time.monotonic()
        await asyncio.sleep(_MOMENT)
        return max(time.monotonic() - begun - _MOMENT, 0.0)


def _leave() -> None:
    os._exit(_STATUS)  # exit handlers would wait for the stuck loop


class Watchdog:
    """Ends the process if the event loop is stuck longer than `patience` seconds.

    Its thread checks a busy loop and sleeps while the loop is idle. Create it in the loop.
    """

    def __init__(
        self,
        dump: Path,
        environ: Mapping[str, str],
        patience: float = PATIENCE,
        leave: Callable[[], None] = _leave,
    ) -> None:
        """`dump` is the file for the stack traces of all threads, written before the exit."""
        self._dump = dump
        self._environ = environ
        self._patience = patience
        self._leave = leave
        self._turned_at: float | None = None  # None while the loop waits for something to do
        self._sleeps = False
        self._roused = threading.Event()
        self._closing = threading.Event()
        self._tell_every = watchdog_seconds(environ)
        self._alarm: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._follow(asyncio.get_running_loop())
        self._turned_at = time.monotonic()
        self._thread.start()
        if self._tell_every is not None:
            self._tell(self._tell_every)

    def close(self) -> None:
        """Stop watching."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._closing.set()
        self._roused.set()
        self._thread.join()

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wrap the selector to see when the loop waits; asyncio has no hook for it."""
        selector: Any = loop._selector  # type: ignore[attr-defined] # noqa: SLF001 - see above
        wait = selector.select

        def select(timeout: float | None = None) -> Any:
            if timeout is None or timeout > 0:
                self._turned_at = None
            found = wait(timeout)
            self._turned_at = time.monotonic()
            if self._sleeps:
                self._sleeps = False
                self._roused.set()
            return found

        selector.select = select

    def _tell(self, every: float) -> None:
        """Send systemd's watchdog keep-alive now and every `every` seconds, even if idle."""
        sd_notify(self._environ, "WATCHDOG=1")
        self._alarm = asyncio.get_running_loop().call_later(every, self._tell, every)

    def _watch(self) -> None:
        while not self._closing.is_set():
            if self._turned_at is None:
                self._sleep()
            looked_at = time.monotonic()
            self._closing.wait(min(_LOOK, self._patience / 3))
            since, now = self._turned_at, time.monotonic()
            stood_still = now - looked_at > self._patience / 2  # the machine was suspended
            if since is not None and now - since > self._patience and not stood_still:
                self._end()
                return

    def _sleep(self) -> None:
        """Block until the loop is busy."""
        self._roused.clear()
        self._sleeps = True
        if self._turned_at is None and not self._closing.is_set():
            self._roused.wait()

    def _end(self) -> None:
        try:
            with self._dump.open("w", encoding="utf-8") as file:
                faulthandler.dump_traceback(file)
        except OSError:
            faulthandler.dump_traceback()
        self._leave()


def sd_notify(environ: Mapping[str, str], message: str) -> None:
    """Send `READY=1`, `WATCHDOG=1` or `STOPPING=1` to systemd, if NOTIFY_SOCKET is set."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)  # noqa: FBT003 - the library's own way to say it
            sender.sendto(message.encode(), address)
    except OSError:
        return


def watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """Half of systemd's watchdog interval, in seconds; None without a watchdog."""
    wanted = environ.get("WATCHDOG_USEC", "")
    meant = environ.get("WATCHDOG_PID")
    is_ours = meant is None or meant in _own_processes()
    return int(wanted) / 2_000_000 if wanted.isdecimal() and is_ours else None


def _own_processes() -> set[str]:
    """Our pids as systemd knows them: the one-file binary runs in a child, so also its parent."""
    is_one_file = getattr(sys, "frozen", False)
    return {str(os.getpid()), *([str(os.getppid())] if is_one_file else [])}


log = logging.getLogger(__name__)

NAME = "ballast"
MEBIBYTES = 64
_MIB = 1 << 20
_LEAST = _MIB
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_SPARE = 4  # the reserve takes at most 1/4 of the free space


class DiskReserve:
    """A preallocated file that is deleted when the disk is full. Smaller on a small volume."""

    def __init__(self, folder: Path, size: int = MEBIBYTES * _MIB) -> None:
        self._path = folder / NAME
        self._size = size
        self._released = 0

    @property
    def is_there(self) -> bool:
        """Whether the reserve file exists."""
        return self._path.exists()

    def free(self) -> int:
        """Free bytes for the box on its volume."""
        found = os.statvfs(self._path.parent)
        return found.f_bavail * found.f_frsize

    def make(self) -> bool:
        """Create the reserve if there is enough space. Returns whether it exists now."""
        if self.is_there:
            return True
        size = min(self._size, self.free() // _SPARE)
        if size < _LEAST:
            return False
        try:
            with atomic_file(self._path) as file:
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in {*_NO_ROOM, errno.EOPNOTSUPP}:
                log.warning("disk reserve: not created: %s", error.strerror)
            return False
        return True

    @property
    def was_released(self) -> bool:
        """Whether the reserve was released and not created again."""
        return self._released > 0 and not self.is_there

    def release_if_full(self) -> None:
        """Release the reserve before a start on a full disk: opening a database needs space."""
        if self.free() <= _LEAST:
            self.release()

    def has_room_for_all(self) -> bool:
        """Whether there is space again beyond the size of the released reserve.

        Also tries to allocate it, because free space does not show a quota.
        """
        needed = self._released + _LEAST
        return self.free() > needed and self._can_take(needed)

    def _can_take(self, size: int) -> bool:
        try:
            with tempfile.TemporaryFile(dir=self._path.parent) as file:
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            return error.errno not in _NO_ROOM
        return True

    def release(self) -> bool:
        """Delete the reserve to free its space. Returns False if there was none."""
        try:
            self._released = self._path.stat().st_size
            self._path.unlink()
        except OSError:
            return False
        log.error("disk reserve: disk full; reserve released, only check-ins are accepted")
        return True


DUMP = "stuck.txt"
_LOOK_SECONDS = 1.0  # while the disk is full

# Actions that stay allowed while the disk is full.
DOOR: frozenset[Callable[..., Any]] = frozenset(
    {check_in, check_in_by_staff, undo_by_staff, undo_check_in, sync_scans}
)


class Reserve:
    """Releases the disk reserve when the disk is full and creates it again later."""

    def __init__(self, box: Box, ballast: DiskReserve) -> None:
        self._box = box
        self._ballast = ballast
        self._alarm: asyncio.TimerHandle | None = None
        self._making: asyncio.Future[bool] | None = None

    def start(self) -> None:
        """Create the reserve in the background, unless it was released before the start."""
        for environment in self._box.environments:
            environment.database.go_first(DOOR, self._make_room)
        if self._ballast.was_released:
            self._refuse_all_but_the_door()
        else:
            loop = asyncio.get_running_loop()
            self._making = loop.run_in_executor(None, self._ballast.make)

    async def close(self) -> None:
        """Stop checking; keep the reserve file."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._making is not None:
            await self._making

    def _make_room(self) -> bool:
        if not self._ballast.release():
            return False
        self._refuse_all_but_the_door()
        return True

    def _refuse_all_but_the_door(self) -> None:
        for environment in self._box.environments:
            environment.database.is_full = True
        self._look_later()

    def _look_later(self) -> None:
        self._alarm = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        try:
            has_room = self._ballast.has_room_for_all()
            if has_room:
                self._ballast.make()
        except OSError:  # the volume is temporarily unreadable or not writable
            has_room = False
        if not has_room:
            self._look_later()
            return
        log.warning("disk reserve: space available again; accepting all writes")
        for environment in self._box.environments:
            environment.database.is_full = False


@asynccontextmanager
async def background_services(
    box: Box, directory: DataDirectory, environ: Mapping[str, str], ballast: DiskReserve
) -> AsyncIterator[Watchdog]:
    """Run the watchdog and the disk reserve. Enter when ready to serve; exit before stopping."""
    watchdog = Watchdog(directory.root / "log" / DUMP, environ)
    reserve = Reserve(box, ballast)
    reserve.start()
    watchdog.start()
    try:
        yield watchdog
    finally:
        sd_notify(environ, "STOPPING=1")
        watchdog.close()
        await reserve.close()
