"""The event loop's watchdog, and the disk space reserve.

The watchdog is a thread that ends the process if the event loop is stuck, even without systemd.
The loop itself sends systemd's keep-alive messages, so these stop when the loop is stuck.

The disk reserve is a file that is deleted when the disk is full, which frees space for check-ins.
All other writes are refused until there is enough free space to create the file again.
"""

import asyncio
import errno
import faulthandler
import logging
import os
import shutil
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from appliance.box import Box
from appliance.core.files import atomic_file
from appliance.database.database import Database
from appliance.door.check_in import check_in, check_in_by_staff, undo_by_staff, undo_check_in
from appliance.door.offline_sync import sync_scans
from appliance.staff.sign_in import begin_sign_in, note_wrong_password
from appliance.staff.two_factor import pass_password, verify_second_factor

# End the process if the loop is stuck for this many seconds (docs/promises.md, G10).
PATIENCE = 30.0
_CHECK_SECONDS = 1.0
_STATUS = 70  # the exit status EX_SOFTWARE in sysexits.h
DUMP = "stuck.txt"


class Watchdog:
    """Ends the process if the event loop is stuck for longer than `patience` seconds.

    Its thread checks the loop every second while the loop is busy, and sleeps while the loop is
    idle.
    """

    def __init__(
        self,
        dump: Path,
        environ: Mapping[str, str],
        patience: float = PATIENCE,
        leave: Callable[[], object] = lambda: os._exit(_STATUS),
    ) -> None:
        """Before the process ends, the stack traces of all threads are written to the file `dump`.

        `leave` must end the process without running the exit handlers, because they would wait for
        the stuck loop.
        """
        self._dump = dump
        self._environ = environ
        self._patience = patience
        self._leave = leave
        self._busy_since: float | None = None  # None while the loop is idle
        self._is_asleep = False
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._keeping_alive: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start the watchdog. Call it in the event loop that it must watch."""
        self._wrap_selector(asyncio.get_running_loop())
        self._busy_since = time.monotonic()
        self._thread.start()
        self._keeping_alive = asyncio.create_task(keep_alive(self._environ))

    def close(self) -> None:
        """Stop the watchdog."""
        if self._keeping_alive is not None:
            self._keeping_alive.cancel()
        self._closing.set()
        self._wake.set()
        self._thread.join()

    def _wrap_selector(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wrap the selector to record when the loop is idle. asyncio has no hook for this."""
        selector: Any = loop._selector  # type: ignore[attr-defined] # noqa: SLF001
        wait = selector.select

        def select(timeout: float | None = None) -> Any:
            if timeout is None or timeout > 0:
                self._busy_since = None
            events = wait(timeout)
            self._busy_since = time.monotonic()
            if self._is_asleep:
                self._is_asleep = False
                self._wake.set()
            return events

        selector.select = select

    def _watch(self) -> None:
        while not self._closing.is_set():
            if self._busy_since is None:
                self._sleep()
            checked_at = time.monotonic()
            self._closing.wait(min(_CHECK_SECONDS, self._patience / 3))
            since, now = self._busy_since, time.monotonic()
            was_suspended = now - checked_at > self._patience / 2  # true if the machine was asleep
            if since is not None and now - since > self._patience and not was_suspended:
                self._end()
                return

    def _sleep(self) -> None:
        """Block until the loop is busy or the watchdog is closed."""
        self._wake.clear()
        self._is_asleep = True
        if self._busy_since is None and not self._closing.is_set():
            self._wake.wait()

    def _end(self) -> None:
        try:
            with self._dump.open("w", encoding="utf-8") as file:
                faulthandler.dump_traceback(file)
        except OSError:
            faulthandler.dump_traceback()
        self._leave()


def sd_notify(environ: Mapping[str, str], message: str) -> None:
    """Send `message`, such as `READY=1`, to systemd if NOTIFY_SOCKET is set."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # `@` marks an abstract socket
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)  # noqa: FBT003 - the library's signature
        sender.sendto(message.encode(), address)


def watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """Return the time between keep-alive messages: half of systemd's watchdog interval, in seconds.

    Returns None if systemd's watchdog is not enabled for this process.
    """
    interval = environ.get("WATCHDOG_USEC", "")
    is_ours = environ.get("WATCHDOG_PID") in {None, str(os.getpid())}
    return int(interval) / 2_000_000 if interval.isdecimal() and is_ours else None


async def keep_alive(environ: Mapping[str, str]) -> None:
    """Send keep-alive messages until cancelled. Return at once if the watchdog is not enabled."""
    interval = watchdog_seconds(environ)
    while interval is not None:
        sd_notify(environ, "WATCHDOG=1")
        await asyncio.sleep(interval)


log = logging.getLogger(__name__)

NAME = "ballast"
_MIB = 1 << 20
_LOOK_SECONDS = 1.0  # while the disk is full, check for free space at this interval

# The actions that are accepted while the disk is full: check-ins, and staff signing in to see why
# everything else is refused.
_ESSENTIAL_ACTIONS: frozenset[Callable[..., Any]] = frozenset({
    check_in, check_in_by_staff, undo_by_staff, undo_check_in, sync_scans,
    begin_sign_in, pass_password, verify_second_factor, note_wrong_password,
})  # fmt: skip


class DiskReserve:
    """A preallocated file in `folder` that is deleted when the disk is full.

    The file is `size` bytes long, or a quarter of the free space if that is less.
    """

    def __init__(self, folder: Path, size: int = 64 * _MIB) -> None:
        self._path = folder / NAME
        self._size = size
        self._released = 0  # the size of the deleted file, in bytes
        self._databases: list[Database] = []
        self._timer: asyncio.TimerHandle | None = None
        self._making: asyncio.Future[bool] | None = None

    def make(self) -> bool:
        """Create the reserve if there is enough space. Returns whether the reserve exists.

        Replaces a smaller reserve that was created while the disk was almost full.
        """
        existing = self._path.stat().st_size if self._path.exists() else 0
        size = min(self._size, (self._free() + existing) // 4)
        if existing and existing >= size:
            return True
        if size < _MIB:
            return False
        try:
            with atomic_file(self._path) as file:
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EOPNOTSUPP}:
                log.warning("disk reserve: the file could not be created: %s", error.strerror)
            return False
        return True

    def release_if_full(self) -> None:
        """Delete the reserve if the disk is full. Call it before opening a database."""
        if self._free() <= _MIB:
            self.release()

    def release(self) -> bool:
        """Delete the reserve to free its space. Returns False if there is no reserve."""
        try:
            self._released = self._path.stat().st_size
            self._path.unlink()
        except OSError:
            return False
        log.error(
            "disk reserve: the disk is full, so the reserve was deleted and only "
            "check-ins and sign-ins are accepted"
        )
        return True

    def has_room_for_all(self) -> bool:
        """Whether there is enough free space to create the reserve again."""
        return self._free() > self._released + _MIB

    def start(self, databases: Iterable[Database]) -> None:
        """Create the reserve in the background, unless `release_if_full` has deleted it.

        The reserve is deleted when a write to one of `databases` fails because the disk is full. It
        is created again when there is enough free space.
        """
        self._databases = list(databases)
        for database in self._databases:
            database.go_first(_ESSENTIAL_ACTIONS, self._make_room)
        if self._released and not self._path.exists():
            self._accept_only_check_ins()
        else:
            loop = asyncio.get_running_loop()
            self._making = loop.run_in_executor(None, self.make)

    async def close(self) -> None:
        """Stop checking for free space. The reserve stays on the disk."""
        if self._timer is not None:
            self._timer.cancel()
        if self._making is not None:
            await self._making

    def _free(self) -> int:
        return shutil.disk_usage(self._path.parent).free

    def _make_room(self) -> bool:
        is_released = self.release()
        if is_released:
            self._accept_only_check_ins()
        return is_released

    def _accept_only_check_ins(self) -> None:
        for database in self._databases:
            database.is_full = True
        self._check_later()

    def _check_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._check)

    def _check(self) -> None:
        try:
            has_room = self.has_room_for_all()
            if has_room:
                self.make()
        except OSError:  # the volume is temporarily unreadable or not writable
            has_room = False
        if not has_room:
            self._check_later()
            return
        log.warning("disk reserve: space is available again, so all writes are accepted")
        for database in self._databases:
            database.is_full = False


@asynccontextmanager
async def background_services(
    box: Box, environ: Mapping[str, str], reserve: DiskReserve
) -> AsyncIterator[None]:
    """Run the watchdog and the disk reserve during the block.

    Enter the block when the box is ready to serve, and leave it before the box stops.
    """
    watchdog = Watchdog(box.directory.root / "log" / DUMP, environ)
    reserve.start(environment.database for environment in box.environments)
    watchdog.start()
    try:
        yield
    finally:
        sd_notify(environ, "STOPPING=1")
        watchdog.close()
        await reserve.close()
