"""Files that survive a power cut: whole or not there, and on the disk when the call returns."""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from appliance.errors import Trouble

PART = ".part"
_LOOK_SECONDS = 0.1
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP}  # of a folder, on some volumes


def sync(path: Path) -> None:
    """Wait until the disk has the file, or the folder's entries. OSError when it cannot."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file, 0600, that becomes `path` when the block succeeds and is removed when it fails.

    Until then its own `name` ends with PART.
    """
    with open_part(path) as file:
        yield file
        put_in_place(file, path)


@contextmanager
def open_part(path: Path) -> Iterator[BinaryIO]:
    """A file, 0600, beside `path`, removed unless the block puts it in place."""
    aside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}{PART}")
    aside.unlink(missing_ok=True)  # left by a power cut
    try:
        with open(aside, "xb", opener=open_private) as file:
            yield file
    finally:
        aside.unlink(missing_ok=True)


def put_in_place(part: BinaryIO, path: Path) -> None:
    """Let the part be `path` from here on."""
    part.flush()
    os.fsync(part.fileno())
    Path(part.name).replace(path)
    try:
        sync(path.parent)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def atomic_write(path: Path, content: bytes) -> None:
    """Replace the file with `content`: after a power cut it is the old one or the new one."""
    with atomic_file(path) as file:
        file.write(content)


def read_private(path: Path) -> bytes:
    """The content of a secret file; Trouble when it cannot be read, or others could.

    FileNotFoundError when it is missing.
    """
    try:
        mode, content = path.stat().st_mode, path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Trouble(f"{path} cannot be read ({error.strerror}): run as its owner") from None
    if mode & 0o077:
        raise Trouble(f"{path} can be read by others: run chmod 600 {path}")
    return content


@contextmanager
def exclusive(folder: Path, patience: float, what: str) -> Iterator[None]:
    """Hold a lock on a folder, waiting for it up to `patience` seconds.

    Another thread of this process counts as another, and the kernel frees the lock of a process
    that ends. Trouble says that `what` does not end.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + patience
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > until:
                raise Trouble(f"{what} has not ended for {patience:.0f} seconds: try again later")
            time.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(handle)


def open_private(path: str, flags: int) -> int:
    """An `opener` of files, 0600."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
