"""The write-ahead log, written once more before anybody builds on it.

When a sync fails, the kernel may drop what it could not write, and still show it to readers
(docs/decisions/storage.md). A process that starts again on the same machine would see a commit in
the log that the disk never got, add others behind it, and fold it into the database; and the next
power cut would end the log at the gap. So what is read of the log at a start is written again,
byte for byte, and synced: either the disk has it then, or the box does not start.
"""

import os
from pathlib import Path

import apsw

from appliance.errors import Trouble
from appliance.store.unusable import describe_unusable

_BLOCK = 1 << 20  # bytes


class LogBeside:
    """The log beside a database, which is there. Each method may raise OSError."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def write_again(self) -> None:
        """A page that is only read is not dirty, and no sync would write it."""
        at = 0
        while block := os.pread(self._handle, _BLOCK, at):
            at += os.pwrite(self._handle, block, at)

    def sync(self) -> None:
        """As SQLite does."""
        os.fsync(self._handle)


def write_log_again(connection: apsw.Connection, log: LogBeside) -> None:
    """Nobody adds to the log meanwhile. OSError or apsw.Error: it cannot be built upon."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        log.write_again()
        log.sync()
    finally:
        connection.execute("ROLLBACK")


def secure_log(connection: apsw.Connection, path: Path) -> None:
    """Write the log of the database at `path` again, if there is any.

    Trouble when it cannot be; `connection` then leaves it as it is.
    """
    try:
        handle = os.open(path.with_name(f"{path.name}-wal"), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        write_log_again(connection, LogBeside(handle))
    except apsw.BusyError as error:
        raise Trouble(describe_unusable(path, error)) from None
    except (OSError, apsw.IOError, apsw.ReadOnlyError) as error:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        raise Trouble(
            f"the log of {path.name} cannot be written ({error}): check the disk, then start again"
        ) from None
    finally:
        os.close(handle)
