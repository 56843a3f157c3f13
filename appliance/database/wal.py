"""The write-ahead log: the acknowledged position, damage in it, and its rewrite at the start."""

import contextlib
import os
import struct
import zlib
from pathlib import Path

import apsw

from appliance.core.errors import OperatorError
from appliance.database.connection import describe_unusable

HEADER = 32  # bytes before the first frame
_FRAME = 24  # bytes before each page
_EXPLAINED = 1  # a commit that was being written when the power went


def count_lost_commits(connection: apsw.Connection, path: Path) -> int:
    """How many acknowledged commits the log of `path` holds behind a damaged frame; mostly 0.

    `connection` is open on `path` and has read from it. A log that a cut explains counts 0.
    """
    commits = _find_commits(path.with_name(f"{path.name}-wal"))
    if not commits:
        return 0
    good, _ = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_NOOP)
    lost = sum(number > good for number in commits)
    return lost if lost > _EXPLAINED else 0


def bears_salt(log: bytes, salt: bytes) -> bool:
    """Whether these are the bytes of the log with that salt, a damaged one included.

    A whole header is believed: the frames behind it may be of the log before.
    """
    header = log[:HEADER]
    if len(header) < HEADER:
        return False
    first = log[HEADER + 8 : HEADER + 16]
    return header[16:24] == salt or (not _is_whole(header) and first == salt)


def count_good_frames(log: bytes) -> int:
    """The last frame that ends a commit before the first that does not add up; 0 for none.

    By the rules of SQLite's file format, and slower: 10 MB a second.
    """
    header = log[:HEADER]
    if len(header) < HEADER or not _is_whole(header):
        return 0
    order, size = _order(header), _FRAME + _page_size(header)
    checksum, good = struct.unpack(">2I", header[24:32]), 0
    for number, start in enumerate(range(HEADER, len(log) - size + 1, size), 1):
        frame = log[start : start + size]
        checksum = _add(order, frame[:8] + frame[_FRAME:], checksum)
        if frame[8:16] != header[16:24] or struct.unpack(">2I", frame[16:24]) != checksum:
            break
        if frame[4:8] != bytes(4):
            good = number
    return good


def _find_commits(path: Path) -> list[int]:
    """The numbers of the frames that end a commit, from 1."""
    frames = []
    try:
        with path.open("rb") as file:
            header = file.read(HEADER)
            page_size = _page_size(header) if len(header) == HEADER else 0
            while page_size and len(frame := file.read(_FRAME)) == _FRAME:
                frames.append(frame)
                file.seek(page_size, 1)
    except FileNotFoundError:
        return []
    if not frames:
        return []
    salt = header[16:24] if _is_whole(header) else frames[0][8:16]
    return [n for n, frame in enumerate(frames, 1) if frame[8:16] == salt and any(frame[4:8])]


def _page_size(header: bytes) -> int:
    found: int = struct.unpack(">I", header[8:12])[0]
    return found if found in {1 << power for power in range(9, 17)} else 4096


def _is_whole(header: bytes) -> bool:
    """Whether the header's own checksum fits."""
    return struct.unpack(">2I", header[24:32]) == _add(_order(header), header[:24], (0, 0))


def _order(header: bytes) -> str:
    """How the words that are added up are read."""
    return ">" if header[3] & 1 else "<"


def _add(order: str, data: bytes, checksum: tuple[int, int]) -> tuple[int, int]:
    """SQLite's checksum of `data`, going on from the one before."""
    first, second = checksum
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


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


def rewrite_frames(connection: apsw.Connection, log: LogBeside) -> None:
    """Nobody adds to the log meanwhile. OSError or apsw.Error: it cannot be built upon."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        log.write_again()
        log.sync()
    finally:
        connection.execute("ROLLBACK")


def rewrite_log(connection: apsw.Connection, path: Path) -> None:
    """Write the log of the database at `path` again, if there is any.

    OperatorError when it cannot be; `connection` then leaves it as it is.
    """
    try:
        handle = os.open(path.with_name(f"{path.name}-wal"), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rewrite_frames(connection, LogBeside(handle))
    except apsw.BusyError as error:
        raise OperatorError(describe_unusable(path, error)) from None
    except (OSError, apsw.IOError, apsw.ReadOnlyError) as error:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        raise OperatorError(
            f"the log of {path.name} cannot be written ({error}): check the disk, then start again"
        ) from None
    finally:
        os.close(handle)


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
        if not _is_whole_mark(mark):
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


def _is_whole_mark(mark: bytes) -> bool:
    said = mark[: _MARK.size]
    return len(mark) == _BYTES and zlib.crc32(said).to_bytes(4, "big") == mark[_MARK.size :]


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}-{what}")
