"""Compare bookings of the box with the same bookings of a simple program (plain.py).

`python -m bench.beside_plain` first sends both the same requests and compares the answers. Then it
loads both in turn with `wrk`, each time on a fresh copy of its data and alone on the machine, at 32
connections and at one, as the disk is and with 1 and 5 ms added to every sync (a library that is
loaded into both). Processor and bytes are counted until the webhook of the last booking is
recorded. It prints the medians of the rounds, and the median of the ratios within each round.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import apsw
from aiohttp import web

from appliance.clock import SystemClock, newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.tokens import Keyring, Tokens
from appliance.database.integrity import session
from appliance.venue.model import find_tonight
from appliance.webhooks.endpoints import register_endpoint
from bench import plain
from tests.journeys.box_process import BoxProcess, found_box

HERE = Path(__file__).parent
TABLES, DATES, SLOTS = 60, 700, ("19:30", "22:00")
WARM_UP_SECONDS = 1
DRAIN_SECONDS = 120
_SLOW_SYNC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
#define SLOW(name) int name(int file) {                                     \\
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name);               \\
    int result = real(file);                                                \\
    usleep(DELAY_US);                                                       \\
    return result;                                                          \\
}
SLOW(fsync)
SLOW(fdatasync)
"""


class BenchError(Exception):
    """The run cannot be trusted. The message says why."""


@dataclass
class Server:
    """A process under load."""

    url: str
    pid: int
    start_seconds: float
    stop: Callable[[], object]

    def cpu_seconds(self) -> float:
        """Return the processor time used so far, user and system, by all threads."""
        after_name = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2]
        user, system = after_name.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def written_kib(self) -> float:
        """Return the KiB that the process has written to the disk so far."""
        io = Path(f"/proc/{self.pid}/io").read_text()
        return int(io.partition("\nwrite_bytes: ")[2].split()[0]) / 1024

    def resident_mib(self) -> float:
        """Resident memory now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@dataclass(frozen=True)
class Load:
    """The results of `wrk`, in milliseconds. `reached` is the first line that was not sent."""

    requests: int
    rate: float
    p50: float
    p99: float
    longest: float
    reached: int


def run_load(server: Server, lines: Path, start: int, seconds: int, connections: int) -> Load:
    """Send the lines of a file from number `start` on. Stops at an error or a refusal."""
    argv = ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "--timeout", "10s",
            "-s", str(HERE / "load.lua"), server.url]  # fmt: skip
    environ = os.environ | {"BENCH_LINES": str(lines), "BENCH_START": str(start)}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environ)
    _, found, figures = done.stdout.partition("\nBENCH ")
    if not found:
        raise BenchError(f"wrk gave no figures: {done.stdout}{done.stderr}")
    raw = json.loads(figures)
    if raw["errors"] or not raw["requests"]:
        raise BenchError(f"{raw['errors']} errors in {raw['requests']} requests of {lines.name}")
    return Load(
        raw["requests"], raw["requests"] / (raw["micros"] / 1e6), raw["p50"] / 1000,
        raw["p99"] / 1000, raw["longest"] / 1000, start + raw["sent"],
    )  # fmt: skip


@contextlib.contextmanager
def bench_folder() -> Iterator[Path]:
    """Yield a folder on the disk that the project is on, deleted afterwards."""
    (HERE / "data").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=HERE / "data"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def open_receiver() -> Iterator[int]:
    """Yield the port of a webhook receiver, a process that answers 200 after 20 ms."""
    port = free_port()
    process = multiprocessing.get_context("spawn").Process(target=_receive, args=(port,))
    process.start()
    try:
        _wait_for_200(f"http://127.0.0.1:{port}/ready")
        yield port
    finally:
        process.kill()
        process.join()


def _receive(port: int) -> None:
    async def ready(_: web.Request) -> web.Response:
        return web.Response()

    async def hook(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(0.020)
        return web.Response()

    app = web.Application()
    app.router.add_get("/ready", ready)
    app.router.add_post("/hook", hook)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None)


@dataclass(frozen=True)
class Prepared:
    """A stopped box with one partner and one subscribed endpoint, to be copied."""

    data: Path
    key: str
    terminal: str
    tables: list[str]
    tonight: date
    settings: dict[str, str]


def prepare_box(folder: Path, receiver_port: int) -> Prepared:
    """Create a box with 60 tables in `folder`."""
    founded = found_box(folder, tables=TABLES)
    keyring = Keyring(DataDirectory(founded.data).master_key(), "live")
    hook = f"http://127.0.0.1:{receiver_port}/hook"
    with session(founded.data / "live.db", SystemClock(), Tokens(), newest_zone_database()) as tx:
        register_endpoint(tx, keyring, hook, ("reservation.created",))
        tables = [str(row[0]) for row in tx.rows("SELECT id FROM venue_table ORDER BY position")]
        tonight = find_tonight(tx)
    settings = {
        "VENUEBOX_WEBHOOKS_ALLOW_NETWORKS": f"127.0.0.1:{receiver_port}",
        "VENUEBOX_WEBHOOKS_ALLOW_HTTP": "true",
    }
    live = founded.keys["live"], founded.terminals["live"]
    return Prepared(founded.data, *live, tables, tonight, settings)


def start_box(data: Path, prepared: Prepared, environ: dict[str, str] | None = None) -> Server:
    """Serve the box in `data`, and wait until it answers."""
    log = data.with_suffix(".log")
    process = BoxProcess(data, log=log, settings=prepared.settings | (environ or {}))
    seconds = process.start()
    return Server(process.address, process.pid, seconds, process.stop)


def write_bookings(prepared: Prepared, target: Path) -> Path:
    """Write requests for 84,000 bookings of which no two collide; dates change fastest."""
    days = [str(prepared.tonight + timedelta(days=2 + day)) for day in range(DATES)]
    wishes = ((t, s, d) for s in SLOTS for t in prepared.tables for d in days)
    with target.open("w") as file:
        for n, (table, slot, day) in enumerate(wishes):
            body = {
                "tableId": table, "date": day, "slot": slot, "guests": 2,
                "customer": {"name": "Salma Bennani", "email": f"salma.{n}@example.com",
                             "phone": f"+2126{n:08d}"},
                "notes": "Une table au calme", "externalRef": f"B-{n}",
                "idempotencyKey": f"bench-{n}", "notifyCustomer": False,
            }  # fmt: skip
            file.write(f"POST /v1/reservations {prepared.key} {json.dumps(body)}\n")
    return target


def fresh_copy(template: Path, target: Path) -> Path:
    """Copy prepared data, write the copy to the disk, and drop it from the kernel's cache.

    The kernel caches a file that was just written in pieces of up to 2 MB, and counts the whole
    piece as written when one page of it changes.
    """
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(template, target)
    forget_cached(target)
    return target


def forget_cached(folder: Path) -> None:
    """Write out all files in `folder` and drop them from the kernel's cache."""
    os.sync()
    for path in (each for each in folder.rglob("*") if each.is_file()):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@dataclass(frozen=True)
class Peer:
    """One of the two programs. `start` takes a data directory and more environment variables."""

    name: str
    template: Path
    database: str
    start: Callable[[Path, dict[str, str]], Server]


@dataclass
class Figures:
    """The figures of one peer under one load, a list entry for each round."""

    rate: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    kib: list[float] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)
    mib: list[float] = field(default_factory=list)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--delays", default="0,1,5", help="ms added to every sync")
    options = parser.parse_args()
    delays = [int(delay) for delay in options.delays.split(",")]
    with bench_folder() as folder, open_receiver() as port:
        prepared = prepare_box(folder, port)
        plain.prepare(
            prepared.data, folder / "plain", prepared.key, f"http://127.0.0.1:{port}/hook"
        )
        lines = write_bookings(prepared, folder / "bookings")
        peers = (
            Peer("box", prepared.data, "live.db", lambda d, e: start_box(d, prepared, e)),
            Peer("plain", folder / "plain", "plain.db", _start_plain),
        )
        _compare_answers(peers, prepared, folder)
        found: dict[tuple[int, int, str], Figures] = {}
        for number in range(options.rounds):
            for delay in delays:
                environ = _slow_sync(folder, delay) if delay else {}
                for connections in (32, 1):
                    for peer in peers if number % 2 == 0 else reversed(peers):
                        figures = found.setdefault((delay, connections, peer.name), Figures())
                        _measure(
                            peer, figures, folder, lines, environ, options.seconds, connections
                        )
                        name = f"{peer.name}, {connections} connections, +{delay} ms"
                        print(f"round {number + 1}: {name}: {figures.rate[-1]:,.0f} bookings/s",
                              file=sys.stderr, flush=True)  # fmt: skip
    _report(found, delays)
    return 0


def _start_plain(data: Path, environ: dict[str, str]) -> Server:
    port, begun = free_port(), time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.plain", str(port), str(data / "plain.db")],
        env=os.environ | environ,
    )
    url = f"http://127.0.0.1:{port}"
    _wait_for_200(f"{url}/ready")

    def stop() -> None:
        process.terminate()
        process.wait(15)

    return Server(url, process.pid, time.monotonic() - begun, stop)


def _slow_sync(folder: Path, delay_ms: int) -> dict[str, str]:
    """Compile the library that adds `delay_ms` to each sync. Return the variable that loads it."""
    library = folder / f"slow_sync_{delay_ms}.so"
    if not library.exists():
        argv = ["cc", "-shared", "-fPIC", "-x", "c", f"-DDELAY_US={1000 * delay_ms}", "-", "-o",
                str(library), "-ldl"]  # fmt: skip
        subprocess.run(argv, input=_SLOW_SYNC, text=True, check=True)
    return {"LD_PRELOAD": str(library)}


def _measure(
    peer: Peer, figures: Figures, folder: Path, lines: Path, environ: dict[str, str],
    seconds: int, connections: int,
) -> None:  # fmt: skip
    data = fresh_copy(peer.template, folder / "round")
    server = peer.start(data, environ)
    try:
        warm = run_load(server, lines, 0, WARM_UP_SECONDS, connections)
        _drain(data / peer.database)
        forget_cached(data)
        cpu, written = server.cpu_seconds(), server.written_kib()
        load = run_load(server, lines, warm.reached, seconds, connections)
        if load.reached > TABLES * DATES * len(SLOTS):
            raise BenchError("every table is taken: shorten the rounds")
        _drain(data / peer.database)
        figures.rate.append(load.rate)
        figures.p99.append(load.p99)
        figures.cpu_us.append(1e6 * (server.cpu_seconds() - cpu) / load.requests)
        figures.kib.append((server.written_kib() - written) / load.requests)
        figures.start_s.append(server.start_seconds)
        figures.mib.append(server.resident_mib())
    finally:
        server.stop()


def _drain(database: Path) -> None:
    """Wait until the outcome of every webhook is recorded."""
    deadline = time.monotonic() + DRAIN_SECONDS
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(1000)
    try:
        while connection.execute("SELECT count(*) FROM delivery WHERE state = 'pending'").get:
            if time.monotonic() > deadline:
                raise BenchError(f"webhooks were not delivered within {DRAIN_SECONDS} s")
            time.sleep(0.1)
    finally:
        connection.close()


def _report(found: dict[tuple[int, int, str], Figures], delays: list[int]) -> None:
    print("| | box | plain | box / plain |\n|---|---|---|---|")

    def row(words: str, delay: int, connections: int, name: str, form: str) -> None:
        ours, theirs = (getattr(found[delay, connections, peer], name) for peer in ("box", "plain"))
        ratio = median(a / b for a, b in zip(ours, theirs, strict=True))
        print(f"| {words} | {median(ours):{form}} | {median(theirs):{form}} | {ratio:.2f} × |")

    for delay in delays:
        added = f", {delay} ms added to each sync" if delay else ""
        for connections in (32, 1):
            place = f"{connections} connection{'s' * (connections > 1)}{added}"
            row(f"{place}: bookings a second", delay, connections, "rate", ",.0f")
            row(f"{place}: p99, ms", delay, connections, "p99", ".1f")
            if not delay:
                row(f"{place}: processor a booking, µs", delay, connections, "cpu_us", ",.0f")
                row(f"{place}: written a booking, KiB", delay, connections, "kib", ".0f")
    row("start, s", delays[0], 1, "start_s", ".2f")
    row("resident memory after 32 connections, MiB", delays[0], 32, "mib", ".0f")


def _compare_answers(peers: tuple[Peer, Peer], prepared: Prepared, folder: Path) -> None:
    """Check that the same requests get the same statuses, codes and members from both."""
    bodies, answers = _questions(prepared), []
    for peer in peers:
        server = peer.start(fresh_copy(peer.template, folder / "round"), {})
        answers.append([_answer(server, prepared.key, body) for body in bodies])
        server.stop()
    for body, ours, theirs in zip(bodies, *answers, strict=True):
        if ours != theirs:
            raise BenchError(f"the answers to {body!r} differ: {ours} and {theirs}")


def _answer(server: Server, key: str, body: bytes) -> tuple[object, ...]:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    status, raw = ask(server.url, "POST", "/v1/reservations", body, headers)
    answer = json.loads(raw)
    if status >= 300:
        return status, answer["code"]
    return status, sorted(answer), answer["status"], answer["notifications"]


def _questions(prepared: Prepared) -> list[bytes]:
    good: dict[str, object] = {
        "tableId": prepared.tables[0], "date": str(prepared.tonight + timedelta(days=2)),
        "slot": SLOTS[0], "guests": 2, "idempotencyKey": "same-1", "notifyCustomer": False,
        "customer": {"name": "Salma Bennani", "email": "salma@example.com"},
    }  # fmt: skip
    changes: list[dict[str, object]] = [
        {}, {}, {"idempotencyKey": "same-2"}, {"idempotencyKey": "same-3", "slot": None},
        {"date": "2026-13-01"}, {"date": "2020-01-01", "idempotencyKey": "same-4"},
        {"slot": "25:00"}, {"slot": "12:01", "idempotencyKey": "same-5"}, {"tableId": "x"},
        {"tableId": "00000000-0000-4000-8000-000000000000", "idempotencyKey": "same-6"},
        {"guests": 0}, {"guests": 9, "idempotencyKey": "same-7"}, {"customer": {}},
        {"customer": {"name": "S"}}, {"customer": {"name": "S", "email": "s"}},
        {"idempotencyKey": ""}, {"notes": "x" * 501},
        {"idempotencyKey": "same-8", "slot": SLOTS[1]},
    ]  # fmt: skip
    return [b"{", *(json.dumps({**good, **change}).encode() for change in changes)]


def ask(
    url: str, method: str, path: str, body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, bytes]:  # fmt: skip
    """Send one request on a connection of its own; return (status, body)."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_200(url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if ask(url, "GET", urlsplit(url).path)[0] == 200:
                return
        time.sleep(0.003)
    raise BenchError(f"nothing answered at {url} within 30 s")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as trouble:
        sys.exit(f"bench: {trouble}")
