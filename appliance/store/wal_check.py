"""Damage in a write-ahead log, which SQLite itself takes for the log's end.

SQLite replays a log up to the first frame that does not add up, and forgets the rest: after a
power cut that is right, for the rest was never synced. But each commit is synced before the
next one begins. So when two whole commits lie behind such a frame, no cut explains it: the
frame was good once, and what came after it was acknowledged.
"""

import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import apsw

_HEADER, _FRAME = 32, 24
_MAX_FRAME_AT = 16  # in the -shm file: the last frame of the last commit that was found good
_EXPLAINED = 1  # a commit that was being written when the power went


@dataclass(frozen=True, slots=True)
class _Log:
    salt: bytes
    commits: tuple[int, ...]  # numbers of the frames that end a commit, from 1


def count_lost_commits(connection: apsw.Connection, path: Path) -> int:
    """How many acknowledged commits the log of `path` holds behind a damaged frame; mostly 0.

    `connection` is open on `path` and has read from it. A log that a cut explains counts 0.
    """
    log = _read_log(path.with_name(f"{path.name}-wal"))
    if log is None:
        return 0
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    index = path.with_name(f"{path.name}-shm").read_bytes()[:_HEADER]
    good = int.from_bytes(index[_MAX_FRAME_AT : _MAX_FRAME_AT + 4], sys.byteorder)
    lost = sum(number > good for number in log.commits)
    return lost if lost > _EXPLAINED else 0


def _read_log(path: Path) -> _Log | None:
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
            if len(header) < _HEADER:
                return None
            page_size = struct.unpack(">I", header[8:12])[0]
            if page_size not in {1 << power for power in range(9, 17)}:
                page_size = 4096
            frames = []
            while len(frame := file.read(_FRAME)) == _FRAME:
                frames.append(frame)
                file.seek(page_size, 1)
    except FileNotFoundError:
        return None
    if not frames:
        return None
    salt = header[16:24] if _is_whole(header) else frames[0][8:16]
    return _Log(
        salt,
        tuple(
            number
            for number, frame in enumerate(frames, 1)
            if frame[8:16] == salt and frame[4:8] != bytes(4)
        ),
    )


def _is_whole(header: bytes) -> bool:
    """Whether the header's own checksum fits."""
    order = ">" if header[3] & 1 else "<"
    first = second = 0
    words = struct.unpack(f"{order}6I", header[:24])
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return struct.unpack(">2I", header[24:32]) == (first, second)
