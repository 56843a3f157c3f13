"""Bookings through the relay beside direct ones: box, relay and client on one machine.

`python -m bench.beside_relay` prints the table; `make bench` has it as `relay`. It runs itself in a
network and a mount namespace of its own, so that names and ports are the usual ones. Both ways are
https with the same certificate.
"""

import argparse
import contextlib
import os
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import box, peers
from bench.children import BenchError, Child, Children, wait_until_answers
from bench.load import Load, require_wrk, run_load
from bench.progress import Progress
from bench.rounds import WARM_UP_SECONDS, fresh_copy

HERE = Path(__file__).parent
NAME, ADDRESS = "box.example", "10.77.0.1"
STATUS_PORT, TLS_PORT = 9180, 8443
WAYS: Mapping[str, str] = {
    "direct": f"https://{NAME}:{TLS_PORT}",
    "relay": f"https://{NAME}",
}
CONNECTIONS = (32, 1)
PATIENCE = 30.0  # seconds until the box is reached through the relay


@dataclass(frozen=True)
class Reached(Child):
    """The box, by one of the ways."""

    base: str = ""

    @property
    def url(self) -> str:
        """Its base address this way."""
        return self.base


@dataclass(frozen=True)
class Booked:
    """One load, and the processor time of the relay for each booking."""

    load: Load
    relay_us: float


def main() -> int:
    """Print the table. Return 1 if the run cannot be trusted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        rights = [] if os.geteuid() == 0 else ["-r"]
        again = [sys.executable, "-m", "bench.beside_relay", *sys.argv[1:], "--inside"]
        os.execvp("unshare", ["unshare", *rights, "-n", "-m", "--", *again])  # noqa: S606
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clears up as Ctrl-C does
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=data))
    try:
        require_wrk()
        _make_network(folder)
        with Children(folder).all_ended() as children:
            print(_report(_measure(children, folder, options.rounds, options.seconds)))
    except (BenchError, KeyboardInterrupt) as trouble:
        print(f"bench: {str(trouble) or 'interrupted'}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder)
    return 0


def _make_network(folder: Path) -> None:
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{ADDRESS} {NAME}\n")
    for command in (
        ["ip", "link", "set", "lo", "up"],
        ["ip", "addr", "add", f"{ADDRESS}/24", "dev", "lo"],
        ["mount", "--bind", str(hosts), "/etc/hosts"],
    ):
        subprocess.run(command, check=True)


def _measure(
    children: Children, folder: Path, rounds: int, seconds: int
) -> dict[tuple[int, str], list[Booked]]:
    progress = Progress()
    progress.say("preparing the box and the relay")
    prepared = box.prepare(children, folder, peers.serve_receiver(children))
    prepared.settings.update(
        VENUEBOX_SERVER_TLS_PORT=str(TLS_PORT),
        VENUEBOX_SERVER_MDNS="false",
        VENUEBOX_SERVER_APP_URL=WAYS["relay"],
    )
    relay = _start_relay(children, folder / "relay")
    code = box.run_command("relay", "invite", NAME, "--data", str(folder / "relay")).strip()
    box.run_command("relay", "join", code, "--data", str(prepared.folder))
    found: dict[tuple[int, str], list[Booked]] = {}
    for number in range(1, rounds + 1):
        progress.say(f"round {number} of {rounds}")
        ways = sorted(WAYS, reverse=number % 2 == 0)  # a b, b a, a b: noise that grows hits both
        for connections in CONNECTIONS:
            for way in ways:
                booked = _take(children, prepared, folder, relay, way, connections, seconds)
                found.setdefault((connections, way), []).append(booked)
                progress.load(f"{way} at {connections}", booked.load)
    return found


def _start_relay(children: Children, folder: Path) -> Child:
    argv = [box.executable(), "relay", "serve", "--data", str(folder), "--address", ADDRESS]
    argv += ["--host", ADDRESS, "--status-port", str(STATUS_PORT)]
    child = children.start("relay", argv, STATUS_PORT)
    wait_until_answers(child, "/health")
    return child


def _take(
    children: Children, prepared: box.Prepared, folder: Path, relay: Child, way: str,
    connections: int, seconds: int,
) -> Booked:  # fmt: skip
    """Load a fresh copy of the box in that way."""
    data = fresh_copy(prepared.folder, folder / "round")
    child = box.start(children, data, prepared.settings, host="0.0.0.0")  # noqa: S104 - alone here
    _wait_until_reached(child)
    reached = Reached(child.name, child.port, child.process, child.log, WAYS[way])
    environment = {**prepared.as_partner(), "BENCH_PATH": "/v1/reservations"}
    warm = run_load(reached, "book.lua", WARM_UP_SECONDS, environment, 0, connections)
    before = relay.cpu_seconds()
    load = run_load(reached, "book.lua", seconds, environment, warm.reached, connections)
    relay_us = 1e6 * (relay.cpu_seconds() - before) / load.requests
    children.stop(child)
    box.check_bookings(data, warm.requests + load.requests, 2)
    return Booked(load, relay_us)


def _wait_until_reached(child: Child) -> None:
    """Wait until the box answers through the relay, in both ways of a round alike."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            url = f"{WAYS['relay']}/health"
            urllib.request.urlopen(url, timeout=5, context=context).close()  # noqa: S310 - ours
            return
        time.sleep(0.05)
    raise BenchError(f"the box is not reached through the relay:\n{child.last_words()}")


def _report(found: Mapping[tuple[int, str], list[Booked]]) -> str:
    head = f"{'bookings over https':<24}{'req/s':>8}{'p50 ms':>9}{'p99 ms':>9}"
    lines = ["", f"{head}{'box µs':>8}{'relay µs':>10}"]
    for (connections, way), taken in sorted(found.items(), key=lambda each: (-each[0][0], each[0])):
        loads = [each.load for each in taken]
        figures = (
            ([load.rate for load in loads], 8, 0),
            ([load.p50 for load in loads], 9, 2),
            ([load.p99 for load in loads], 9, 2),
            ([load.cpu_us for load in loads], 8, 0),
            ([each.relay_us for each in taken], 10, 0),
        )
        lines.append(
            f"{f'{way} at {connections}':<24}"
            + "".join(
                f"{statistics.median(of):>{width}.{digits}f}" for of, width, digits in figures
            )
        )
    for connections in CONNECTIONS:
        pairs = list(zip(found[connections, "relay"], found[connections, "direct"], strict=True))
        rate = statistics.median(a.load.rate / b.load.rate for a, b in pairs)
        p99 = statistics.median(a.load.p99 / b.load.p99 for a, b in pairs)
        lines.append(f"relay / direct at {connections}: rate {rate:.2f} ×, p99 {p99:.2f} ×")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
