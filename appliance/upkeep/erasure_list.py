"""`erasures.jsonl`: which reservations were erased on demand, by their ids, which name nobody.

A line that cannot be read, after a power cut or with a damaged byte, hides no other. What it
said is noted again at the next start, as long as the database knows of it.
"""

import json
import os
from pathlib import Path

import msgspec

from appliance.clock import format_instant
from appliance.durable import open_private, sync
from appliance.errors import Trouble

LIST = "erasures.jsonl"


class _Entry(msgspec.Struct):
    environment: str
    reservation: str


def read_list(folder: Path, environment: str) -> list[str]:
    """The reservations of that environment that were erased on demand, the earliest first.

    Trouble when the file is there and cannot be opened.
    """
    return [e.reservation for _, e in _read(folder) if e and e.environment == environment]


def find_unreadable(folder: Path) -> list[int]:
    """The numbers of the lines that say nothing, the first being 1. Trouble as above."""
    return [number for number, entry in _read(folder) if entry is None]


def append_to_list(folder: Path, environment: str, erased: dict[str, int]) -> None:
    """Note reservations with the instants of their erasure; durable when this returns."""
    known = set(read_list(folder, environment))
    lines = [
        json.dumps({"environment": environment, "reservation": id_, "at": format_instant(at)})
        for id_, at in erased.items()
        if id_ not in known
    ]
    if not lines:
        return
    with open(folder / LIST, "ab", opener=open_private) as file:
        file.write(("\n" + "\n".join(lines) + "\n").encode())
        file.flush()
        os.fsync(file.fileno())
    sync(folder)  # it may be new


def _read(folder: Path) -> list[tuple[int, _Entry | None]]:
    """Each line that is not empty: its number, and what it says if it can be read."""
    path = folder / LIST
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Trouble(f"{path} cannot be read ({error.strerror}): run as its owner") from None
    return [(number, _parse(line)) for number, line in enumerate(lines, 1) if line.strip()]


def _parse(line: bytes) -> _Entry | None:
    try:
        return msgspec.json.decode(line, type=_Entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
