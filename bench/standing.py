"""The box at rest: how soon it answers after its start, and what it costs while nobody asks."""

import http.client
import socket
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from bench import box
from bench.children import BenchError, Child, Children

IDLE_SECONDS = 10
STARTS = 5
_SETTLE_SECONDS = 3


@dataclass(frozen=True)
class Idle:
    """What the process used in IDLE_SECONDS of nobody asking."""

    cpu_ms: float
    voluntary_switches: int
    involuntary_switches: int
    threads: int
    rss_mib: float


def seconds_to_first_answer(children: Children, prepared: box.Prepared) -> float:
    """From the start of the process to the first 200 of GET /v1/venue: the median of a few."""
    return statistics.median(_one_start(children, prepared) for _ in range(STARTS))


def idle(children: Children, prepared: box.Prepared) -> Idle:
    """What a settled box uses while nothing happens."""
    child = box.serve(children, prepared.folder, prepared)
    time.sleep(_SETTLE_SECONDS)
    before = _usage(child.process.pid)
    time.sleep(IDLE_SECONDS)
    after = _usage(child.process.pid)
    rss = int(_status(Path(f"/proc/{child.process.pid}"))["VmRSS"].split()[0]) / 1024
    children.stop(child)
    cpu, voluntary, involuntary = (
        late - early for early, late in zip(before[:3], after[:3], strict=True)
    )
    return Idle(cpu / 1e6, round(voluntary), round(involuntary), round(after[3]), rss)


def _one_start(children: Children, prepared: box.Prepared) -> float:
    begun = time.perf_counter()
    child = box.start(children, prepared.folder, prepared.settings)
    _wait_for_port(child)
    connection = http.client.HTTPConnection("127.0.0.1", child.port, timeout=10)
    connection.request("GET", "/v1/venue", headers={"Authorization": f"Bearer {prepared.key}"})
    status = connection.getresponse().status
    elapsed = time.perf_counter() - begun
    connection.close()
    children.stop(child)
    if status != http.client.OK:
        raise BenchError(f"the first answer of the box was {status}")
    return elapsed


def _wait_for_port(child: Child) -> None:
    """A bare connect every millisecond: asking costs the starting box next to nothing."""
    while child.process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", child.port)) == 0:
                return
        time.sleep(0.001)
    raise BenchError(f"the box ended before it answered:\n{child.last_words()}")


def _usage(pid: int) -> tuple[float, float, float, float]:
    """CPU nanoseconds, voluntary and involuntary switches of all threads, and their number."""
    cpu = voluntary = involuntary = threads = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        status = _status(task)
        cpu += int((task / "schedstat").read_text().split()[0])
        voluntary += int(status["voluntary_ctxt_switches"])
        involuntary += int(status["nonvoluntary_ctxt_switches"])
        threads += 1
    return cpu, voluntary, involuntary, threads


def _status(process: Path) -> dict[str, str]:
    lines = (process / "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
