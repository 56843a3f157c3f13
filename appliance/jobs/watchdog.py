"""The event loop's watchdog, and the disk space reserve.

The loop sends systemd's keep-alive messages. If the loop is stuck, they stop, and systemd ends the
process and starts it again (docs/promises.md).

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
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from appliance.box import Box
from appliance.core.files import atomic_file
from appliance.database.database import Database
from appliance.door.check_in import (
    check_in,
    check_in_by_staff,
)
from appliance.door.offline_sync import sync_scans
from appliance.door.undo import undo_by_staff, undo_check_in
from appliance.staff.sign_in import (
    begin_sign_in,
    note_wrong_password,
    right_password,
    sign_out,
)
from appliance.staff.two_factor import pass_password, verify_second_factor


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
    """Send keep-alive messages until cancelled. Return immediately if the watchdog is not enabled.

    If they stop, systemd ends the process with SIGABRT. The stack traces of all threads are then
    written to standard error, which is the journal.
    """
    interval = watchdog_seconds(environ)
    if interval is not None:
        faulthandler.enable()
    while interval is not None:
        sd_notify(environ, "WATCHDOG=1")
        await asyncio.sleep(interval)


log = logging.getLogger(__name__)

NAME = "ballast"
_MIB = 1 << 20
_LOOK_SECONDS = 1.0  # while the disk is full, check for free space at this interval

# The actions that are accepted while the disk is full: check-ins, and staff signing in, to see why
# everything else is refused, and signing out.
_ESSENTIAL_ACTIONS: frozenset[Callable[..., Any]] = frozenset({
    check_in, check_in_by_staff, undo_by_staff, undo_check_in, sync_scans,
    begin_sign_in, pass_password, verify_second_factor, note_wrong_password, right_password,
    sign_out,
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
    beating = asyncio.create_task(keep_alive(environ))
    reserve.start(environment.database for environment in box.environments)
    try:
        yield
    finally:
        sd_notify(environ, "STOPPING=1")
        beating.cancel()
        await reserve.close()
