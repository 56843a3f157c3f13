"""No other SQLite library may open a live file in this process.

Two copies of SQLite in one process cancel each other's POSIX locks (sqlite.org, "How To
Corrupt An SQLite Database File", 2.2.1). Python's own module, which aiosqlite uses too, tells
an audit hook what it is about to open; for a live file the hook refuses.
"""

import os
import sys
from pathlib import Path
from typing import Any


class _Guard:
    """The paths that only apsw may open. An audit hook cannot be removed: there is one."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.installed = False

    def add(self, path: Path) -> None:
        self.paths.add(os.path.realpath(path))
        if not self.installed:
            self.installed = True
            sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "sqlite3.connect":
            return
        name = os.fsdecode(arguments[0]).removeprefix("file:").partition("?")[0]
        if os.path.realpath(name) in self.paths:
            raise RuntimeError(f"{name} is a live database: only apsw may open it in this process")


_guard = _Guard()


def guard_live_file(path: Path) -> None:
    """From now on, refuse to let Python's `sqlite3` open `path` in this process."""
    _guard.add(path)
