"""The machine a run was made on, without its name or its paths, and how fast its disk commits."""

import os
import platform
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

import apsw

from bench.children import BenchError


def describe(folder: Path) -> dict[str, str | int]:
    """What a reader needs to judge the figures."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": int(_field("/proc/meminfo", "MemTotal").split()[0]) // 1024,
        "kernel": platform.release(),
        "disk": _disk_of(folder),
        "filesystem": filesystem_of(folder),
        "python": f"{platform.python_version()}, {platform.python_compiler()}{_profiled()}",
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


def _disk_of(folder: Path) -> str:
    """What kind of disk it is; its model where it says so. Virtual ones know nothing of it."""
    device = folder.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    for place in (block, block.parent):  # a partition's parent is the disk
        if (model := place / "device" / "model").exists():
            turns = (place / "queue" / "rotational").read_text().strip() == "1"
            return f"{model.read_text().strip()}, {'turning' if turns else 'solid state'}"
    return "virtual" if block.name.startswith(("vd", "xvd")) else "unknown"


def _profiled() -> str:
    """Pythons that were built with profiles are a tenth to a third faster."""
    options = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    return ", with profiles" if "--enable-optimizations" in options else ", without profiles"


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"
