"""The watermark: how far the write-ahead log of a database was acknowledged.

SQLite takes a damaged frame for the end of its log. In the last commit of the log that looks
like a write that a power cut tore, and what was acknowledged would be forgotten without a
word. So after each commit, when the sync has made it durable, 16 bytes beside the database
say which log it is in, by its salts, and how many frames of it count.

They are never synced themselves. A power cut may take them back, then they say less; they
never say more than a log that is whole. Lost, torn or of another log they say nothing.
"""

import contextlib
import os
import struct
import zlib
from pathlib import Path

import apsw

from appliance.store.wal_check import HEADER, bears_salt, count_good_frames

_MARK = struct.Struct(">8sI")  # the log's salts, frames; then the CRC-32 of both
_BYTES = _MARK.size + 4
_SALT = slice(16, 24)


class FilesBeside:
    """A log and its watermark beside a database; the mark is made when it is first written.

    Each method may raise OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = -1
        self._mark = -1

    def read_head(self) -> bytes:
        """Of the log that was there at the first call: it stays while a connection is open."""
        if self._log < 0:
            self._log = os.open(_beside(self._path, "wal"), os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._log, HEADER, 0)

    def read_log(self) -> bytes:
        """As the file is now."""
        return _beside(self._path, "wal").read_bytes()

    def read_mark(self) -> bytes:
        """As the file is now."""
        return watermark_file(self._path).read_bytes()

    def write_mark(self, mark: bytes) -> None:
        """Into the page cache: it survives the process, not the power."""
        if self._mark < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._mark = os.open(watermark_file(self._path), flags, 0o600)
        os.pwrite(self._mark, mark, 0)

    def tidy(self) -> None:
        """Take the watermark of a log away that was folded and is gone: it says nothing more."""
        with contextlib.suppress(OSError):
            if not _beside(self._path, "wal").exists():
                watermark_file(self._path).unlink(missing_ok=True)

    def close(self) -> None:
        """Keep no file open."""
        for handle in (self._log, self._mark):
            if handle >= 0:
                os.close(handle)
        self._log = self._mark = -1


class Watermark:
    """Rises with each commit of a connection, and with those that others made before it."""

    def __init__(self, connection: apsw.Connection, files: FilesBeside) -> None:
        self._connection = connection
        self._files = files

    def rise(self) -> None:
        """After a commit, before it is acknowledged; 2 µs. Where it cannot, it stays lower."""
        with contextlib.suppress(OSError, apsw.Error):
            # The head first: where another process begins the log anew meanwhile, its frames
            # are counted for salts that no log will bear again.
            salt = self._files.read_head()[_SALT]
            self._files.write_mark(_encode(salt, _count_frames(self._connection)))


def count_missing_frames(connection: apsw.Connection, files: FilesBeside) -> int:
    """How many acknowledged frames the log lacks that SQLite found; 0 unless it was damaged.

    `connection` has read from the database. Others may write to it meanwhile.
    """
    try:
        mark = files.read_mark()
        if not _is_whole(mark):
            return 0
        salt, frames = _MARK.unpack_from(mark)
        with contextlib.suppress(apsw.LockedError):  # it is reading: the file decides
            if _count_frames(connection) >= frames:
                return 0
        log = files.read_log()
        # SQLite counts none in a log that somebody is about to begin anew: the file decides,
        # unless it was begun anew while it was read.
        if not bears_salt(log, salt) or files.read_head() != log[:HEADER]:
            return 0
    except OSError:  # no log, or no watermark
        return 0
    missing: int = frames - count_good_frames(log)
    return max(0, missing)


def watermark_file(path: Path) -> Path:
    """The watermark of the database at `path`."""
    return _beside(path, "watermark")


def _count_frames(connection: apsw.Connection) -> int:
    """How many frames count in the log, by SQLite; nothing is folded into the file."""
    frames, _folded = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_NOOP)
    return int(frames)


def _encode(salt: bytes, frames: int) -> bytes:
    said = _MARK.pack(salt, frames)
    return said + zlib.crc32(said).to_bytes(4, "big")


def _is_whole(mark: bytes) -> bool:
    said = mark[: _MARK.size]
    return len(mark) == _BYTES and zlib.crc32(said).to_bytes(4, "big") == mark[_MARK.size :]


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}-{what}")
