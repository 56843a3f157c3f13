"""A scan while one address asks for a page on 195 connections without a pause.

`python -m bench.flood [PATH…]` prints how long one terminal waits for its verdicts, which it asks
for five times a second, alone and beside each flood.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.children import BenchError, Children, free_port, wait_until_answers
from bench.doors_client import Terminals
from bench.load import require_wrk
from tests.app.terminal_bridge.many_doors import expect
from tests.journeys.box_process import ROOMY, clean_environ, found_box

HERE = Path(__file__).parent
CONNECTIONS = 195  # the box closes more than 200 of one address
PER_SECOND = 5.0
MOST_MS = 50.0  # the 95th of 100 scans
PATHS = ("/openapi.json", "/door", "/book", "/docs/partners/guide", "/nothing", "/health")


def main() -> int:
    """Print a line for each flood. Return 1 if a scan was slow or wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", default=PATHS)
    parser.add_argument("--scans", type=int, default=100, help="beside each flood")
    options = parser.parse_args()
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=data))
    try:
        require_wrk()
        with Children(folder).all_ended() as children:
            return measure(children, folder, options.paths, options.scans)
    except BenchError as trouble:
        print(f"bench: {trouble}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder)


def measure(children: Children, folder: Path, paths: list[str], scans: int) -> int:
    """Scan alone, then beside each flood."""
    crowd = expect(found_box(folder, tables=24).data, scans * (len(paths) + 1), 1)
    texts = [party.text for party in crowd.parties]
    port = free_port()
    argv = [sys.executable, "-m", "web.main", "serve", "--data", str(crowd.data),
            "--host", "127.0.0.1", "--port", str(port)]  # fmt: skip
    environ = clean_environ(ROOMY | {"VENUEBOX_BOOKING_ENABLED": "true"})
    box = children.start("box", argv, port, environ)
    terminals = Terminals(port, [crowd.terminals[0].token])
    token = {"Authorization": f"Bearer {crowd.terminals[0].token}"}
    wait_until_answers(box, "/terminal/v1/me", token)
    is_slow = False
    for number, path in enumerate(("", *paths)):
        some, texts = texts[:scans], texts[scans:]
        flood = flooding(box.url + path, scans) if path else None
        terminals.seconds.clear()
        terminals.paced(some, PER_SECOND, random.Random(1), f"flood-{number}")
        found = sorted(1000 * each for each in terminals.seconds)
        rate = ""
        if flood is not None:
            rate = flood.communicate()[0].partition("Requests/sec:")[2].split("\n")[0].strip()
        p50, p95 = found[len(found) // 2], found[len(found) * 95 // 100]
        is_slow |= p95 > MOST_MS
        print(f"{path or 'alone':24} p50 {p50:6.1f}  p95 {p95:6.1f}  longest {found[-1]:6.1f} ms"
              f"  {rate and f'beside {rate} pages/s'}", flush=True)  # fmt: skip
    if terminals.wrong:
        raise BenchError(f"{len(terminals.wrong)} passes were not let in: {terminals.wrong[0]}")
    return int(is_slow)


def flooding(url: str, scans: int) -> "subprocess.Popen[str]":
    """Start wrk with CONNECTIONS. It ends by itself after the scans."""
    seconds = int(scans / PER_SECOND) + 1
    argv = ["wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", f"{seconds}s", "--timeout", "30s",
            "-H", "Accept: text/html", url]  # fmt: skip
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    sys.exit(main())
