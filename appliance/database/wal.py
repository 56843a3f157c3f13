"""The write-ahead log (WAL): checkpoints, detection of lost commits, and the rewrite at start.

Checkpoints: SQLite's automatic checkpoint runs inside a COMMIT, which then takes longer, because a
thousand or more pages are copied and synced. Here, a second connection copies most pages while
commits continue. The few remaining pages are copied between two commits. SQLite then writes the
next commit to the start of the WAL.

Erasure: `secure_delete` overwrites deleted content in the database file. After an erasure, the WAL
still contains the content until it is truncated. Content may also remain in the unused space of a
page whose rows were moved; the nightly VACUUM removes it.

Watermark: SQLite treats a damaged frame as the end of the WAL, so it would silently drop a damaged
last commit. After each durable commit, the WAL's salts and the number of acknowledged frames are
therefore written to a 16-byte watermark file beside the database. The watermark is not synced, so
after a power cut it may be out of date. It then counts too few frames, never too many.

Damage: each commit is synced before the next one begins, so a power cut can leave at most one
commit after a damaged frame. Two or more commits after a damaged frame prove that the damage
happened later and that acknowledged commits are lost.

Rewrite: after a failed fsync, the kernel may discard written data but still return it to readers
(docs/decisions/storage.md). At start, the WAL is therefore rewritten with the same bytes and
synced. If that fails, the box does not start.
"""

import asyncio
import contextlib
import logging
import os
import queue
import struct
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw

from appliance.core.errors import OperatorError
from appliance.core.files import require_space
from appliance.database.connection import describe_unusable, open_connection

log = logging.getLogger(__name__)

HEADER = 32  # bytes before the first frame
_FRAME = 24  # bytes before each page
_SALT = slice(16, 24)  # the salts in the header


def count_lost_commits(connection: apsw.Connection, path: Path) -> int:
    """Count the commits in the WAL of `path` that follow a damaged frame. Normally 0.

    `connection` must be a connection to `path` that has read from it. If only one commit follows,
    the result is 0, because a power cut may have interrupted that commit.
    """
    commits = _find_commits(_beside(path, "wal"))
    if not commits:
        return 0
    good = _count_frames(connection)
    lost = sum(number > good for number in commits)
    return lost if lost > 1 else 0


def _has_salt(wal: bytes, salt: bytes) -> bool:
    """Whether `wal` has the two salts in `salt`, even if its header is damaged.

    If the header is damaged, the salts in the first frame are compared. An intact header takes
    precedence, because the frames after it may be older than the last reset of the WAL.
    """
    header = wal[:HEADER]
    if len(header) < HEADER:
        return False
    first = wal[HEADER + 8 : HEADER + 16]
    return header[_SALT] == salt or (not _is_whole(header) and first == salt)


def count_good_frames(wal: bytes) -> int:
    """Return the number of the last commit frame before the first invalid frame, or 0 if none.

    Parses SQLite's WAL format in Python, at about 10 MB per second.
    """
    header = wal[:HEADER]
    if len(header) < HEADER or not _is_whole(header):
        return 0
    order, size = _order(header), _FRAME + _page_size(header)
    checksum, good = struct.unpack(">2I", header[24:32]), 0
    for number, start in enumerate(range(HEADER, len(wal) - size + 1, size), 1):
        frame = wal[start : start + size]
        checksum = _add(order, frame[:8] + frame[_FRAME:], checksum)
        if frame[8:16] != header[_SALT] or struct.unpack(">2I", frame[16:24]) != checksum:
            break
        if frame[4:8] != bytes(4):
            good = number
    return good


def _find_commits(path: Path) -> list[int]:
    """Return the frame numbers (from 1) of the commit frames in the WAL file at `path`."""
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
    salt = header[_SALT] if _is_whole(header) else frames[0][8:16]
    return [n for n, frame in enumerate(frames, 1) if frame[8:16] == salt and any(frame[4:8])]


def _page_size(header: bytes) -> int:
    size: int = struct.unpack(">I", header[8:12])[0]
    return size if size in {1 << power for power in range(9, 17)} else 4096


def _is_whole(header: bytes) -> bool:
    """Whether the header's checksum is valid."""
    return struct.unpack(">2I", header[24:32]) == _add(_order(header), header[:24], (0, 0))


def _order(header: bytes) -> str:
    """Return the byte order of the checksum's words, in the notation of `struct`."""
    return ">" if header[3] & 1 else "<"


def _add(order: str, data: bytes, checksum: tuple[int, int]) -> tuple[int, int]:
    """Return SQLite's checksum of `data`, continued from `checksum`."""
    first, second = checksum
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


_BLOCK = 1 << 20  # in bytes


def write_again(handle: int) -> None:
    """Overwrite the file with its own content, so that fsync writes every page to the disk."""
    at = 0
    while block := os.pread(handle, _BLOCK, at):
        at += os.pwrite(handle, block, at)
    os.fsync(handle)


def rewrite_frames(connection: apsw.Connection, rewrite: Callable[[], None]) -> None:
    """Call `rewrite`, which rewrites and fsyncs the WAL, while holding the write lock.

    Raises OSError or apsw.Error if the rewrite fails.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        rewrite()
    finally:
        connection.execute("ROLLBACK")


def rewrite_log(connection: apsw.Connection, path: Path) -> None:
    """Rewrite and fsync the WAL of `path`, if it exists, in case an earlier fsync failed.

    Raises OperatorError if the rewrite fails. After a disk error, SQLite runs no checkpoint when
    `connection` is closed.
    """
    try:
        handle = os.open(_beside(path, "wal"), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rewrite_frames(connection, partial(write_again, handle))
    except apsw.BusyError as error:
        raise OperatorError(describe_unusable(path, error)) from None
    except (OSError, apsw.IOError, apsw.ReadOnlyError) as error:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        raise OperatorError(
            f"the write-ahead log of {path.name} cannot be written ({error}). Check the disk, "
            "then start again."
        ) from None
    finally:
        os.close(handle)


class FilesBeside:
    """The WAL and the watermark file of a database. The first write creates the watermark file.

    All methods may raise OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal = -1
        self._mark = -1

    def read_head(self) -> bytes:
        """Read the header of the WAL file. The first call opens the file."""
        if self._wal < 0:
            self._wal = os.open(_beside(self._path, "wal"), os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._wal, HEADER, 0)

    def read_log(self) -> bytes:
        """Read the whole WAL."""
        return _beside(self._path, "wal").read_bytes()

    def read_mark(self) -> bytes:
        """Read the watermark."""
        return watermark_file(self._path).read_bytes()

    def write_mark(self, mark: bytes) -> None:
        """Write the watermark without fsync. It survives a process crash, but not a power cut."""
        if self._mark < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._mark = os.open(watermark_file(self._path), flags, 0o600)
        os.pwrite(self._mark, mark, 0)

    def tidy(self) -> None:
        """Delete the watermark file if the WAL was deleted."""
        with contextlib.suppress(OSError):
            if not _beside(self._path, "wal").exists():
                watermark_file(self._path).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files."""
        for handle in (self._wal, self._mark):
            if handle >= 0:
                os.close(handle)
        self._wal = self._mark = -1


def raise_watermark(connection: apsw.Connection, files: FilesBeside) -> None:
    """Set the watermark to the current end of the WAL. This takes 2 µs.

    Call it after each commit of `connection`, before the commit is acknowledged. If an error
    occurs, it is ignored, and the watermark keeps its earlier position.
    """
    with contextlib.suppress(OSError, apsw.Error):
        # Read the header before the frame count. If another process resets the WAL between the two
        # reads, the watermark contains the old salts, which match no later WAL.
        salt = files.read_head()[_SALT]
        files.write_mark(_encode(salt, _count_frames(connection)))


def count_missing_frames(connection: apsw.Connection, files: FilesBeside) -> int:
    """Count the acknowledged frames that are missing from the WAL.

    `connection` must have read from the database. Other processes may write to the database at the
    same time.
    """
    try:
        mark = files.read_mark()
        salt, frames = mark[:8], int.from_bytes(mark[8:12], "big")
        if mark != _encode(salt, frames):
            return 0
        # SQLite raises LockedError in a read transaction. In that case, read the file instead.
        with contextlib.suppress(apsw.LockedError):
            if _count_frames(connection) >= frames:
                return 0
        wal = files.read_log()
        # If the next commit will reset the WAL, SQLite reports no frames, so count them in the
        # file. Skip the check if the WAL was reset after the watermark was written, or is being
        # reset now.
        if not _has_salt(wal, salt) or files.read_head() != wal[:HEADER]:
            return 0
    except OSError:  # there is no WAL or no watermark
        return 0
    return max(0, frames - count_good_frames(wal))


def watermark_file(path: Path) -> Path:
    """Return the path of the watermark file of the database at `path`."""
    return _beside(path, "watermark")


def _count_frames(connection: apsw.Connection) -> int:
    """Return the number of frames in the WAL that SQLite considers valid. Runs no checkpoint."""
    frames, _checkpointed = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_NOOP)
    return int(frames)


def _encode(salt: bytes, frames: int) -> bytes:
    """Return a watermark: the WAL's salts, the frame count, and the CRC-32 of both."""
    content = struct.pack(">8sI", salt, frames)
    return content + zlib.crc32(content).to_bytes(4, "big")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}-{suffix}")


DUE_PAGES = 8000  # checkpoint when the WAL has this many pages, which is about 8 MB
_FEW_PAGES = 600  # few enough to copy without noticeably delaying a commit
_MOST_PASSES = 4


class Checkpointer:
    """Checkpoints the WAL in a thread. Create and use it in the same event loop."""

    def __init__(
        self,
        path: Path,
        writing: apsw.Connection,
        run_between: Callable[[Callable[[], None]], None],
        on_broken: Callable[[BaseException], None],
    ) -> None:
        """Start checkpointing the commits of the connection `writing`.

        `run_between` is called in the loop and must run the given job on a thread between two
        commits. `on_broken` is called in the loop with the error if the disk fails.
        """
        self._connection = open_connection(path)
        self._run_between = run_between
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._due = DUE_PAGES
        self._requests: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_running = False
        self._thread = threading.Thread(target=self._run, name="checkpointer")
        self._thread.start()
        writing.set_wal_hook(self._note_length)  # replaces SQLite's automatic checkpoints

    def join(self) -> None:
        """Stop the thread and close its connection.

        When the last connection to the database is closed, SQLite checkpoints the WAL.
        """
        self._requests.put("end")
        self._thread.join()
        self._connection.close()

    def _note_length(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """Request a checkpoint if the WAL is too long. SQLite calls this hook in each COMMIT."""
        if pages < DUE_PAGES:
            self._due = DUE_PAGES
        elif pages >= self._due and not self._is_running:
            self._is_running = True
            self._due = pages + DUE_PAGES  # if the checkpoint is incomplete, retry at this length
            self._requests.put("checkpoint")
        return apsw.SQLITE_OK

    def _run(self) -> None:
        while self._requests.get() == "checkpoint":
            if self._checkpoint(passes=_MOST_PASSES):
                self._loop.call_soon_threadsafe(self._run_between, self._checkpoint_the_rest)
            else:
                self._is_running = False

    def _checkpoint_the_rest(self) -> None:
        self._checkpoint(passes=1)
        self._is_running = False

    def _checkpoint(self, passes: int) -> bool:
        """Checkpoint until few pages are left.

        Returns False if the database is busy or the disk fails.
        """
        try:
            for _ in range(passes):
                pages, done = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                if pages - done <= _FEW_PAGES:
                    break
        except apsw.BusyError:  # another process is running a checkpoint
            return False
        except apsw.Error as error:  # no data is lost, but the WAL keeps growing
            log.warning("database: checkpoint failed: %s", error)
            if isinstance(error, (apsw.IOError, apsw.CorruptError)):
                self._loop.call_soon_threadsafe(self._on_broken, error)
            return False
        return True


_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
_WAIT_MILLISECONDS = 250
_MIB = 1 << 20
_LOST_WRITES = frozenset({
    apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC,
})  # fmt: skip


def is_lost(error: apsw.IOError) -> bool:
    """Whether `error` is a failed write or fsync, after which written data may be lost."""
    # The type stubs of apsw lack this attribute.
    return getattr(error, "extendedresult", 0) in _LOST_WRITES


def wipe(path: Path) -> bool:
    """Vacuum the database and truncate its WAL. Call it from a thread.

    Returns False if the database was busy or the disk became full. Blocks writers for about one
    second per 100 MB. Raises OperatorError, and changes nothing, if the disk has too little free
    space.
    """
    connection = open_connection(path)
    try:
        _check_free_space(connection, path)
        # VACUUM may need a lot of temporary space, so use the database's volume, not memory.
        connection.pragma("temp_store_directory", str(path.parent.absolute()))
        connection.execute("PRAGMA temp_store = FILE")
        connection.execute("PRAGMA cache_size = -2000")
        connection.execute("VACUUM")
        return _truncate_wal(connection)
    except (apsw.BusyError, apsw.LockedError, apsw.FullError):
        return False
    finally:
        connection.close()


def cut_log(path: Path) -> bool:
    """Checkpoint the whole WAL and truncate it. Call it from a thread.

    Returns False if the disk was full or the database was busy for 10 s.
    """
    try:
        with closing(open_connection(path)) as connection:
            return _truncate_wal(connection)
    except apsw.FullError:
        return False


def _truncate_wal(connection: apsw.Connection) -> bool:
    connection.set_busy_timeout(_WAIT_MILLISECONDS)  # short, because the wait blocks writers
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)  # does not block writers
            busy, *_sizes = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
            if not busy:
                return True
        except apsw.BusyError:  # the box is running a checkpoint
            pass
        time.sleep(_PAUSE_SECONDS)
    return False


def _check_free_space(connection: apsw.Connection, path: Path) -> None:
    """Raise OperatorError unless the free disk space is at least twice the database's size."""
    size = connection.pragma("page_count") * connection.pragma("page_size")
    require_space(path.parent, 2 * size + _MIB, f"{path.name} cannot be vacuumed")
