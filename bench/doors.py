"""Eight doors scan, first alone and then while partners book as fast as possible.

`python -m bench.doors` has eight terminals, each with its live feed open, scan five fresh guest
passes a second each, by the clock, regardless of the box. Times are the terminal's: from the moment
a scan was due to its verdict. Then `wrk` scans on 8 connections without a pause, for the rate and
the processor time of a scan. For comparison, one durable commit on the same disk is measured.
"""

import argparse
import http.client
import json
import random
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import apsw

from bench.beside_plain import (
    BenchError,
    Server,
    bench_folder,
    fresh_copy,
    open_receiver,
    prepare_box,
    run_load,
    start_box,
    write_bookings,
)
from tests.app.terminal_bridge.many_doors import Crowd, expect

EACH_PER_SECOND = 5.0  # scans per terminal; a busy door admits one guest a second
GUESTS = 30_000


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    with bench_folder() as folder, open_receiver() as port:
        prepared = prepare_box(folder, port)
        crowd = expect(prepared.data, GUESTS, seed=1)
        random.Random(1).shuffle(crowd.parties)
        bookings = write_bookings(prepared, folder / "bookings")
        scans = _write_scans(crowd, folder / "scans")

        def serve() -> Server:
            return start_box(fresh_copy(prepared.data, folder / "round"), prepared)

        commits = _durable_commits(folder)
        print("| | a second | p50, ms | p99, ms | longest, ms |\n|---|---|---|---|---|")
        server = serve()
        with _listening(server, crowd):
            _print_times("8 doors, nothing else", *_scan_paced(server, crowd, options.seconds, 0))
            with ThreadPoolExecutor() as beside:
                booking = beside.submit(run_load, server, bookings, 0, options.seconds + 2, 8)
                time.sleep(1)
                first = int(options.seconds * EACH_PER_SECOND * len(crowd.terminals))
                paced = _scan_paced(server, crowd, options.seconds, first)
                words = f"8 doors, beside {booking.result().rate:,.0f} bookings a second"
            _print_times(words, *paced)
        server.stop()
        _print_times("one durable commit", commits, sum(commits))
        server = serve()
        warm = run_load(server, scans, 0, 1, 8)
        cpu = server.cpu_seconds()
        load = run_load(server, scans, warm.reached, 5, 8)
        cpu_us = 1e6 * (server.cpu_seconds() - cpu) / load.requests
        if load.reached > GUESTS:
            raise BenchError("every guest is in: shorten the load")
        server.stop()
        _check_admitted(folder / "round", warm.requests + load.requests, 16)
    print(
        f"\n8 connections without a pause: {load.rate:,.0f} scans a second, p50 {load.p50:.1f} ms, "
        f"p99 {load.p99:.1f} ms; processor a scan: {cpu_us:,.0f} µs"
    )
    return 0


def _write_scans(crowd: Crowd, target: Path) -> Path:
    terminals = crowd.terminals
    with target.open("w") as file:
        for n, party in enumerate(crowd.parties):
            body = json.dumps({"scanId": f"wrk-{n}", "code": party.text})
            token = terminals[n % len(terminals)].token
            file.write(f"POST /terminal/v1/scans {token} {body}\n")
    return target


def _scan_paced(
    server: Server, crowd: Crowd, seconds: int, first: int
) -> tuple[list[float], float]:
    """Scan guests from number `first` on; return (seconds of each scan, seconds in all)."""
    begun, beat = time.monotonic() + 0.2, 1 / EACH_PER_SECOND
    each = int(seconds * EACH_PER_SECOND)
    address = urlsplit(server.url).netloc

    def scan(door: int) -> list[float]:
        chance, took = random.Random(door), []
        connection = http.client.HTTPConnection(address, timeout=30)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = {"Authorization": f"Bearer {crowd.terminals[door].token}",
                   "Content-Type": "application/json"}  # fmt: skip
        shift = chance.random()
        for turn in range(each):
            # People do not scan at exact intervals, so vary each by a third.
            due = begun + (turn + shift + chance.random() / 3) * beat
            time.sleep(max(0, due - time.monotonic()))
            party = crowd.parties[first + door * each + turn]
            body = json.dumps({"scanId": f"paced-{first}-{turn}", "code": party.text})
            connection.request("POST", "/terminal/v1/scans", body, headers)
            answer = json.loads(connection.getresponse().read())
            took.append(time.monotonic() - due)
            if answer["result"] != "checked_in":
                raise BenchError(f"a fresh pass was answered {answer['result']}")
        connection.close()
        return took

    with ThreadPoolExecutor(len(crowd.terminals)) as pool:
        found = [one for times in pool.map(scan, range(len(crowd.terminals))) for one in times]
    return found, time.monotonic() - begun


@contextmanager
def _listening(server: Server, crowd: Crowd) -> Iterator[None]:
    """Let each terminal read its feed, as the door app does."""
    over, address = threading.Event(), urlsplit(server.url)
    ears = []
    for terminal in crowd.terminals:
        ear = socket.create_connection((address.hostname, address.port))
        ear.sendall(
            f"GET /terminal/v1/events HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Authorization: Bearer {terminal.token}\r\n\r\n".encode()
        )
        ear.setblocking(False)
        ears.append(ear)

    def hear() -> None:
        while not over.wait(0.05):
            for ear in ears:
                try:
                    while ear.recv(1 << 20):
                        pass
                except BlockingIOError:
                    continue

    hearing = threading.Thread(target=hear)
    hearing.start()
    try:
        yield
    finally:
        over.set()
        hearing.join()
        for ear in ears:
            ear.close()


def _durable_commits(folder: Path) -> list[float]:
    """Return the seconds of 500 one-row commits of SQLite, in WAL mode with synchronous=FULL."""
    connection, took = apsw.Connection(str(folder / "commits.db")), []
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT)")
    for _ in range(500):
        begun = time.monotonic()
        connection.execute("INSERT INTO t (s) VALUES (?)", ("x" * 100,))
        took.append(time.monotonic() - begun)
    connection.close()
    return took


def _check_admitted(data: Path, answered: int, unanswered: int) -> None:
    """Check that each answered scan let its guest in. wrk leaves some without an answer."""
    connection = apsw.Connection(str(data / "live.db"), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "SELECT result, count(*) FROM scan_log GROUP BY result"
    counts = dict(connection.execute(sql))
    connection.close()
    admitted = counts.pop("checked_in", 0)
    if counts or not answered <= admitted <= answered + unanswered:
        raise BenchError(f"{answered} scans were answered, {admitted} let a guest in, {counts}")


def _print_times(words: str, took: Sequence[float], seconds: float) -> None:
    ordered = sorted(1000 * each for each in took)
    p50, p99 = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    print(
        f"| {words} | {len(ordered) / seconds:,.0f} | {p50:.2f} | {p99:.2f} | {ordered[-1]:.2f} |"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as trouble:
        sys.exit(f"bench: {trouble}")
