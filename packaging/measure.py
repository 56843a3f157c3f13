"""Measure the built file: its size, and installed its start time and idle memory.

`make binary` runs this script, which needs only Python. It exits with status 1 if a limit is
exceeded.

The start time also depends on this machine, which may be slow or busy. If it exceeds its limit,
this is printed, but the script only fails if the CPU time exceeds `FAULT_SECONDS` too.
"""

import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MEGABYTES = 40
START_SECONDS = 0.8
FAULT_SECONDS = 2.4
MEMORY_MEGABYTES = 76
# The fastest of up to 20 starts counts. The pauses give a busy machine about a minute to calm down.
STARTS, PAUSE_SECONDS = 20, 3.0
SETTLE_SECONDS = 3.0
VENUE = """
name = "Riad Atlas"
slug = "riad-atlas"
[[tables]]
number = "T1"
name = "Terrasse 1"
capacity_min = 2
capacity_max = 4
minimum_spend = 500
"""


def main() -> int:
    """Measure the file in the first argument and return the exit status."""
    program = Path(sys.argv[1]).resolve()
    size = program.stat().st_size / 1e6
    with tempfile.TemporaryDirectory(prefix="venuebox-measure-") as folder:
        venue, data = Path(folder, "venue.toml"), Path(folder, "box")
        venue.write_text(VENUE, "utf-8")
        environ = {"PATH": "/usr/bin:/bin", "HOME": folder}
        make = [program, "init", "--data", data, "--venue", venue]
        subprocess.run(make, check=True, env=environ, stdout=subprocess.DEVNULL)
        unpack = [program, "service", "unpack", Path(folder, "program")]
        done = subprocess.run(unpack, check=True, env=environ, stdout=subprocess.PIPE, text=True)
        installed = Path(done.stdout.strip(), "venuebox")
        starts, memory = [], 0.0
        for number in range(STARTS):
            start, used = measure(installed, data, environ, idle=number == 0)
            starts.append(start)
            memory = used or memory
            if number >= 2 and min(starts)[0] < START_SECONDS:
                break
            time.sleep(PAUSE_SECONDS * (number >= 2))
    seconds, computing = min(starts)
    kept = [
        say("size", f"{size:.1f} MB", size, MEGABYTES, "MB"),
        say("start to first answer", f"{seconds:.2f} s", seconds, START_SECONDS, "s")
        or computing < FAULT_SECONDS,
    ]
    print(f"{'of which it computed':22} {computing:>7.2f} s")
    kept += [
        say("idle memory", f"{memory:.0f} MB", memory, MEMORY_MEGABYTES, "MB"),
    ]
    return 0 if all(kept) else 1


def say(what: str, found: str, value: float, limit: float, unit: str) -> bool:
    """Print a line with the value and its limit. Return whether the value is below the limit."""
    kept = value < limit
    print(f"{what:22} {found:>9}  (below {limit} {unit}){'' if kept else '  NOT KEPT'}")
    return kept


def measure(
    program: Path, data: Path, environ: dict[str, str], *, idle: bool
) -> tuple[tuple[float, float], float]:
    """Start the box once. Return ((start time, CPU time) in seconds, idle memory in megabytes).

    The start time ends with the first response. The memory is only measured with `idle`, else 0.
    """
    began = time.monotonic()
    box = subprocess.Popen(
        [program, "serve", "--data", data, "--host", "127.0.0.1", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ,
    )  # fmt: skip
    try:
        assert box.stdout is not None
        ready = re.search(r":(\d+)$", box.stdout.readline().rstrip())
        assert ready is not None, "the box did not start"
        connection = http.client.HTTPConnection("127.0.0.1", int(ready[1]), timeout=10)
        connection.request("GET", "/health")
        status = connection.getresponse().status
        took = time.monotonic() - began
        assert status == 200, f"GET /health returned status {status}"
        connection.close()
        start = took, seconds_of(box.pid)
        if not idle:
            return start, 0.0
        time.sleep(SETTLE_SECONDS)
        return start, memory_of(box.pid)
    finally:
        box.terminate()
        box.wait(20)


def seconds_of(pid: int) -> float:
    """Return the CPU time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    """Return the resident memory of a process, in megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    sys.exit(main())
