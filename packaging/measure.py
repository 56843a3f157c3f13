"""What the built file weighs, how fast it answers, how much memory it idles in.

Run by `make binary`; ends with status 1 when a promise is not kept. Needs nothing but Python.

Seconds are those of this machine, which may be slow or busy: it is said when they are too many,
and only processor time far beyond the promise is a fault of the file.
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
START_SECONDS = 1.2
FAULT_SECONDS = 3.6
MEMORY_MEGABYTES = 90
STARTS, PAUSE_SECONDS = 20, 3.0  # the best counts; a busy machine is given a minute to calm down
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
    """Measure the file that is named; the exit status."""
    program = Path(sys.argv[1]).resolve()
    size = program.stat().st_size / 1e6
    with tempfile.TemporaryDirectory(prefix="venuebox-measure-") as folder:
        venue, data = Path(folder, "venue.toml"), Path(folder, "box")
        venue.write_text(VENUE, "utf-8")
        environ = {"PATH": "/usr/bin:/bin", "HOME": folder}
        make = [program, "init", "--data", data, "--venue", venue]
        subprocess.run(make, check=True, env=environ, stdout=subprocess.DEVNULL)
        starts, memory = [], 0.0
        for number in range(STARTS):
            start, used = measure(program, data, environ, idle=number == 0)
            starts.append(start)
            memory = used or memory
            if number >= 2 and min(starts)[0] < START_SECONDS:
                break
            time.sleep(PAUSE_SECONDS * (number >= 2))
    seconds, computing = min(starts)
    print(f"{'of which it computed':22} {computing:>7.2f} s")
    kept = [
        say("size", f"{size:.1f} MB", size, MEGABYTES, "MB"),
        say("start to first answer", f"{seconds:.2f} s", seconds, START_SECONDS, "s")
        or computing < FAULT_SECONDS,
        say("idle memory", f"{memory:.0f} MB", memory, MEMORY_MEGABYTES, "MB"),
    ]
    return 0 if all(kept) else 1


def say(what: str, found: str, value: float, limit: float, unit: str) -> bool:
    """One line; whether the value is below its limit."""
    kept = value < limit
    print(f"{what:22} {found:>9}  (below {limit} {unit}){'' if kept else '  NOT KEPT'}")
    return kept


def measure(
    program: Path, data: Path, environ: dict[str, str], *, idle: bool
) -> tuple[tuple[float, float], float]:
    """One start: seconds to the first answer, those it computed, and its megabytes when `idle`."""
    began = time.monotonic()
    box = subprocess.Popen(
        [program, "serve", "--data", data, "--host", "127.0.0.1", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ,
    )  # fmt: skip
    try:
        assert box.stdout is not None
        ready = re.search(r":(\d+)$", box.stdout.readline().rstrip())
        assert ready is not None, "it did not become ready"
        connection = http.client.HTTPConnection("127.0.0.1", int(ready[1]), timeout=10)
        connection.request("GET", "/health")
        status = connection.getresponse().status
        took = time.monotonic() - began
        assert status == 200, f"/health answered {status}"
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
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    """Megabytes of memory that a process has in use."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    sys.exit(main())
