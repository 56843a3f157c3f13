"""The machine a run was made on, without its name or its paths, and how fast its disk commits."""

import os
import platform
import time
from pathlib import Path

import apsw
from children import BenchError


def describe(folder: Path) -> dict[str, str | int]:
    """What a reader needs to judge the figures."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": int(_field("/proc/meminfo", "MemTotal").split()[0]) // 1024,
        "kernel": platform.release(),
        "filesystem": filesystem_of(folder),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
    }


def filesystem_of(folder: Path) -> str:
    """The type of the file system; one that lives in memory would make every commit free."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [mount for mount in mounts if folder.resolve().is_relative_to(mount[0])]
    kind = max(holding, key=lambda mount: len(mount[0]))[1]
    if kind in {"tmpfs", "ramfs"}:
        raise BenchError(
            "the data directory is in memory, where a commit costs nothing: choose one on a disk"
        )
    return kind


def durable_commits_per_second(folder: Path, seconds: float = 2.0) -> float:
    """One-row transactions of SQLite in WAL at synchronous=FULL, one after the other."""
    connection = apsw.Connection(str(folder / "commits.db"))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t(n INTEGER PRIMARY KEY, s TEXT)")
    commits, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        connection.execute("INSERT INTO t(s) VALUES (?)", ("x" * 100,))
        commits += 1
    elapsed = time.perf_counter() - start
    connection.close()
    return commits / elapsed


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"
