"""The write-ahead log (WAL): its watermark, detection of damage, and the rewrite at start.

The acknowledged position (watermark): SQLite takes a damaged frame for the end of its log, so a
damaged last commit would be forgotten silently. After each durable commit, 16 bytes beside the
database say which log it is in, by its salts, and how many frames of it count. They are not
synced: a power cut may take them back, and then they say less, never more than a log that is
whole.

Damage: each commit is synced before the next begins. Two whole commits behind a bad frame cannot
come from a power cut, so the frame was good once and the commits after it were acknowledged.

Rewrite: after a failed sync the kernel may drop data and still show it to readers
(docs/decisions/storage.md). So the log that a start reads is written again, byte for byte, and
synced: the disk has it then, or the box does not start.
"""

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
_EXPLAINED = 1  # a power cut may have interrupted one commit


def count_lost_commits(connection: apsw.Connection, path: Path) -> int:
    """Count the commits in the WAL of `path` that follow a damaged frame; normally 0.

    `connection` is open on `path` and has read from it. One commit, which a power cut may have
    interrupted, counts as 0.
    """
    commits = _find_commits(path.with_name(f"{path.name}-wal"))
    if not commits:
        return 0
    good, _ = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_NOOP)
    lost = sum(number > good for number in commits)
    return lost if lost > _EXPLAINED else 0


def bears_salt(log: bytes, salt: bytes) -> bool:
    """Whether `log` is the WAL with that salt, even if it is damaged.

    An intact header decides, because the frames after it may belong to the previous WAL.
    """
    header = log[:HEADER]
    if len(header) < HEADER:
        return False
    first = log[HEADER + 8 : HEADER + 16]
    return header[16:24] == salt or (not _is_whole(header) and first == salt)


def count_good_frames(log: bytes) -> int:
    """Return the number of the last commit frame before the first invalid frame; 0 if none.

    Follows SQLite's file format, but slower: 10 MB a second.
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
    """Return the numbers (from 1) of the commit frames."""
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
    """Whether the header's checksum is valid."""
    return struct.unpack(">2I", header[24:32]) == _add(_order(header), header[:24], (0, 0))


def _order(header: bytes) -> str:
    """Return the byte order of the checksum's words, as in `struct`."""
    return ">" if header[3] & 1 else "<"


def _add(order: str, data: bytes, checksum: tuple[int, int]) -> tuple[int, int]:
    """Return SQLite's checksum of `data`, continued from `checksum`."""
    first, second = checksum
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


_BLOCK = 1 << 20  # bytes


class LogBeside:
    """An open WAL file. Each method may raise OSError."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def write_again(self) -> None:
        """Rewrite the file with its own content, so that all pages are dirty and get synced."""
        at = 0
        while block := os.pread(self._handle, _BLOCK, at):
            at += os.pwrite(self._handle, block, at)

    def sync(self) -> None:
        """Fsync the file, as SQLite does."""
        os.fsync(self._handle)


def rewrite_frames(connection: apsw.Connection, log: LogBeside) -> None:
    """Rewrite and fsync the WAL under the write lock. OSError or apsw.Error if that fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        log.write_again()
        log.sync()
    finally:
        connection.execute("ROLLBACK")


def rewrite_log(connection: apsw.Connection, path: Path) -> None:
    """Rewrite and fsync the WAL of `path`, if there is one: a failed fsync may have lost pages.

    OperatorError if that fails; closing `connection` then runs no checkpoint.
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


_MARK = struct.Struct(">8sI")  # the WAL's salts and frame count; the CRC-32 of both follows
_BYTES = _MARK.size + 4
_SALT = slice(16, 24)


class FilesBeside:
    """The WAL and the watermark file of a database; the latter is created at the first write.

    Each method may raise OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = -1
        self._mark = -1

    def read_head(self) -> bytes:
        """Read the header of the WAL that existed at the first call."""
        if self._log < 0:
            self._log = os.open(_beside(self._path, "wal"), os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._log, HEADER, 0)

    def read_log(self) -> bytes:
        """Read the whole WAL."""
        return _beside(self._path, "wal").read_bytes()

    def read_mark(self) -> bytes:
        """Read the watermark."""
        return watermark_file(self._path).read_bytes()

    def write_mark(self, mark: bytes) -> None:
        """Write the watermark without fsync: it survives a crash, but not a power cut."""
        if self._mark < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._mark = os.open(watermark_file(self._path), flags, 0o600)
        os.pwrite(self._mark, mark, 0)

    def tidy(self) -> None:
        """Delete the watermark if its WAL is gone."""
        with contextlib.suppress(OSError):
            if not _beside(self._path, "wal").exists():
                watermark_file(self._path).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files."""
        for handle in (self._log, self._mark):
            if handle >= 0:
                os.close(handle)
        self._log = self._mark = -1


class Watermark:
    """The acknowledged position in the WAL, updated after each commit of a connection."""

    def __init__(self, connection: apsw.Connection, files: FilesBeside) -> None:
        self._connection = connection
        self._files = files

    def rise(self) -> None:
        """Update it after a commit, before the acknowledgement; 2 µs. Errors are ignored."""
        with contextlib.suppress(OSError, apsw.Error):
            # Read the header first: if another process resets the WAL meanwhile, its frames are
            # stored with old salts, which no WAL will have again.
            salt = self._files.read_head()[_SALT]
            self._files.write_mark(_encode(salt, _count_frames(self._connection)))


def count_missing_frames(connection: apsw.Connection, files: FilesBeside) -> int:
    """Count the acknowledged frames that the WAL lacks; 0 unless it is damaged.

    `connection` has read from the database. Others may write to it meanwhile.
    """
    try:
        mark = files.read_mark()
        if not _is_whole_mark(mark):
            return 0
        salt, frames = _MARK.unpack_from(mark)
        with contextlib.suppress(apsw.LockedError):  # `connection` is reading: check the file
            if _count_frames(connection) >= frames:
                return 0
        log = files.read_log()
        # SQLite counts no frames in a WAL that is about to be reset, so check the file, unless
        # it was reset during the read.
        if not bears_salt(log, salt) or files.read_head() != log[:HEADER]:
            return 0
    except OSError:  # no WAL, or no watermark
        return 0
    missing: int = frames - count_good_frames(log)
    return max(0, missing)


def watermark_file(path: Path) -> Path:
    """Return the path of the watermark file of the database at `path`."""
    return _beside(path, "watermark")


def _count_frames(connection: apsw.Connection) -> int:
    """Return the number of valid frames in the WAL according to SQLite; runs no checkpoint."""
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
