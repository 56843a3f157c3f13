"""`erasures.jsonl`: which reservations were erased on demand, by their ids, which name nobody.

A line that cannot be read, after a power cut or with a damaged byte, hides no other. What it
said is noted again at the next start, as long as the database knows of it.
"""

import json
import os
from pathlib import Path

from appliance.clock import format_instant
from appliance.durable import sync
from appliance.errors import Trouble

LIST = "erasures.jsonl"


def read_list(folder: Path, environment: str) -> list[str]:
    """The reservations of that environment that were erased on demand, the earliest first.

    Trouble when the file is there and cannot be opened.
    """
    entries = (entry for _, entry in _read(folder))
    return [entry[1] for entry in entries if entry is not None and entry[0] == environment]


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
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    handle = os.open(folder / LIST, flags, 0o600)
    with os.fdopen(handle, "ab") as file:
        file.write(("\n" + "\n".join(lines) + "\n").encode())
        file.flush()
        os.fsync(handle)
    sync(folder)  # it may be new


def _read(folder: Path) -> list[tuple[int, tuple[str, str] | None]]:
    """Each line that is not empty: its number, and environment and reservation if it has them."""
    path = folder / LIST
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Trouble(f"{path} cannot be read ({error.strerror}): run as its owner") from None
    return [(number, _parse(line)) for number, line in enumerate(lines, 1) if line.strip()]


def _parse(line: bytes) -> tuple[str, str] | None:
    try:
        entry = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    environment, reservation = entry.get("environment"), entry.get("reservation")
    if isinstance(environment, str) and isinstance(reservation, str):
        return environment, reservation
    return None
