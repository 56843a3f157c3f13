"""wrk, driven: one load, its figures, and a refusal of figures that hide errors."""

import json
import os
import shutil
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.children import BenchError, Child

LUA = Path(__file__).parent / "lua"
CONNECTIONS = 32
THREADS = 1  # one thread of wrk outruns every peer here, and leaves the machine to them


@dataclass(frozen=True)
class Load:
    """What one load showed. Times are milliseconds as the client saw them.

    `cpu_us` is what the server's process used for each request, which a busy neighbour hardly
    changes. `reached` is the first number of the plan (booking, pass) left untouched;
    `memory_mib` is what the server held in memory at the end.
    """

    requests: int
    rate: float
    p50: float
    p99: float
    longest: float
    errors: int
    cpu_us: float
    reached: int
    memory_mib: float


def run_load(
    child: Child,
    script: str,
    seconds: int,
    environment: Mapping[str, str],
    start: int,
    connections: int = CONNECTIONS,
) -> Load:
    """Runs one script of lua/ against a server, on numbers from `start` on.

    Any error or refusal, on the wire or in a status, ends the bench.
    """
    argv = ["wrk", "-t", str(THREADS), "-c", str(connections), "-d", f"{seconds}s"]
    argv += ["--timeout", "10s", "-s", str(LUA / script), child.url]
    ours = {"BENCH_LUA": str(LUA), "BENCH_START": str(start), **environment}
    cpu = child.cpu_seconds()
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={**os.environ, **ours},
        timeout=seconds + 60,
    )  # fmt: skip
    line = next((each for each in done.stdout.splitlines() if each.startswith("BENCH ")), None)
    if line is None:
        raise BenchError(f"wrk gave no figures for {child.name}:\n{done.stdout}{done.stderr}")
    used = child.cpu_seconds() - cpu
    load = _parsed(json.loads(line.removeprefix("BENCH ")), used, start, child.memory_mib())
    if load.errors or not load.requests:
        raise BenchError(
            f"{child.name}: {load.errors} errors in {load.requests} requests of {script}: {line}"
        )
    return load


def _parsed(raw: dict[str, float], cpu_seconds: float, start: int, memory_mib: float) -> Load:
    return Load(
        requests=int(raw["requests"]),
        rate=raw["requests"] / (raw["micros"] / 1e6),
        p50=raw["p50"] / 1000,
        p99=raw["p99"] / 1000,
        longest=raw["longest"] / 1000,
        errors=int(sum(raw[kind] for kind in ("connect", "read", "write", "timeout", "status"))),
        cpu_us=1e6 * cpu_seconds / max(1, raw["requests"]),
        reached=start + int(raw["used"]),
        memory_mib=memory_mib,
    )


def median_of(loads: Sequence[Load]) -> Load:
    """The round in the middle, figure by figure."""
    return Load(
        requests=sum(load.requests for load in loads),
        rate=statistics.median(load.rate for load in loads),
        p50=statistics.median(load.p50 for load in loads),
        p99=statistics.median(load.p99 for load in loads),
        longest=max(load.longest for load in loads),
        errors=sum(load.errors for load in loads),
        cpu_us=statistics.median(load.cpu_us for load in loads),
        reached=max(load.reached for load in loads),
        memory_mib=statistics.median(load.memory_mib for load in loads),
    )


def faster(loads: Sequence[Load], others: Sequence[Load]) -> float:
    """How many times the rate of the others: round by round, then the median."""
    return statistics.median(a.rate / b.rate for a, b in zip(loads, others, strict=True))


def spread(loads: Sequence[Load]) -> float:
    """The fastest round divided by the slowest: 1.0 on a machine that does nothing else."""
    return max(load.rate for load in loads) / min(load.rate for load in loads)


def require_wrk() -> None:
    """The one tool that no package of ours brings."""
    if shutil.which("wrk") is None:
        raise BenchError("wrk is missing: apt-get install wrk")
