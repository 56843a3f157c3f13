"""The machine a run was made on, without its name or its paths, and how fast its disk commits."""

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import apsw

from tests.bench.children import BenchError


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


@dataclass(frozen=True)
class Commits:
    """One-row transactions, one after the other; times in milliseconds."""

    per_second: float
    p50: float
    p99: float


def durable_commits(folder: Path, seconds: float = 2.0) -> Commits:
    """Of SQLite in WAL at synchronous=FULL, with nothing around them."""
    connection = apsw.Connection(str(folder / "commits.db"))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t(n INTEGER PRIMARY KEY, s TEXT)")
    times, start = [], time.perf_counter()
    before = start
    while before < start + seconds:
        connection.execute("INSERT INTO t(s) VALUES (?)", ("x" * 100,))
        now = time.perf_counter()
        times.append((now - before) * 1000)
        before = now
    connection.close()
    times.sort()
    return Commits(len(times) / seconds, times[len(times) // 2], times[len(times) * 99 // 100])


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"
