"""Damage in a write-ahead log, which SQLite itself takes for the log's end.

SQLite replays a log up to the first frame that does not add up, and forgets the rest: after a
power cut that is right, for the rest was never synced. But each commit is synced before the
next one begins. So when two whole commits lie behind such a frame, no cut explains it: the
frame was good once, and what came after it was acknowledged. Of the last commit the watermark
knows.
"""

import struct
from pathlib import Path

import apsw

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
