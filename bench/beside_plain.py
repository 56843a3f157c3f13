"""The box beside a plain team's booking: same answers first, then the same load.

`python -m bench.beside_plain` prints the table alone; `make bench` has it as `plain`.
Processor and bytes are counted until the webhook of the last booking is recorded.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from bench import box, peers, plain, venue
from bench.children import BenchError, Child, Children, ask, free_port, wait_until_answers
from bench.load import Load, run_load
from bench.progress import Progress
from bench.report import Target
from bench.rounds import WARM_UP_SECONDS, fresh_copy

HERE = Path(__file__).parent
CONNECTIONS = (32, 1)
PATIENCE = 180  # seconds in which a backlog drains


@dataclass(frozen=True)
class Booked:
    """One load: what the client saw, and what each booking cost until its webhook was recorded."""

    load: Load
    cpu_us: float
    written_kib: float


@dataclass(frozen=True)
class Peer:
    """One of the two."""

    name: str
    template: Path
    serve: Callable[[Path], Child]
    pending: Callable[[Path], int]


def measure(
    children: Children,
    prepared: box.Prepared,
    folder: Path,
    rounds: int,
    seconds: int,
    progress: Progress,
) -> tuple[str, dict[str, float], list[Target]]:
    """The table, the ratios and the targets."""
    template = folder / "plain"
    plain.prepare(prepared.folder, template, prepared.key, f"{prepared.receiver.url}/hook")

    def serve_plain(data: Path) -> Child:
        port = free_port()
        argv = [sys.executable, "-m", "bench.plain", str(port), str(data / "plain.db")]
        child = children.start("plain", argv, port)
        wait_until_answers(child, "/ready")
        return child

    both = (
        Peer("venuebox", prepared.folder, lambda data: box.serve(children, data, prepared),
             lambda data: _pending(data / "live.db")),
        Peer("plain", template, serve_plain, lambda data: _pending(data / "plain.db")),
    )  # fmt: skip
    _check_answers(both, children, prepared, folder)
    found: dict[tuple[str, int], list[Booked]] = {}
    for number in range(1, rounds + 1):
        progress.say(f"plain: round {number} of {rounds}")
        for connections in CONNECTIONS:
            for peer in both:
                booked = _take(peer, children, prepared, folder, seconds, connections)
                found.setdefault((peer.name, connections), []).append(booked)
                progress.load(f"{peer.name} at {connections}", booked.load)
    return _report(found)


def _take(
    peer: Peer,
    children: Children,
    prepared: box.Prepared,
    folder: Path,
    seconds: int,
    connections: int,
) -> Booked:
    data = fresh_copy(peer.template, folder / "round")
    child = peer.serve(data)
    environment = {**prepared.as_partner(), "BENCH_PATH": "/v1/reservations"}
    warm = run_load(child, "book.lua", WARM_UP_SECONDS, environment, 0, connections)
    _drain(peer, data)
    _drop_cached(data)
    cpu, written = child.cpu_seconds(), _written(child)
    load = run_load(child, "book.lua", seconds, environment, warm.reached, connections)
    _drain(peer, data)
    cpu, written = child.cpu_seconds() - cpu, _written(child) - written
    children.stop(child)
    return Booked(load, 1e6 * cpu / load.requests, written / load.requests / 1024)


def _drain(peer: Peer, data: Path) -> None:
    """Until every webhook is recorded."""
    deadline = time.monotonic() + PATIENCE
    while peer.pending(data):
        if time.monotonic() > deadline:
            raise BenchError(f"{peer.name} did not deliver its webhooks in {PATIENCE} s")
        time.sleep(0.2)


def _drop_cached(data: Path) -> None:
    """Let the kernel forget the files it just copied.

    It caches a file that was read in one go in pieces of up to 2 MB, and counts the whole piece
    as written when one page in it changes.
    """
    os.sync()
    for path in (each for each in data.rglob("*") if each.is_file()):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _pending(database: Path) -> int:
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = connection.execute("SELECT count(*) FROM delivery WHERE state = 'pending'").get
        return int(found)
    finally:
        connection.close()


def _written(child: Child) -> int:
    """Bytes that the process had the storage write."""
    io = Path(f"/proc/{child.process.pid}/io").read_text()
    return int(io.partition("\nwrite_bytes: ")[2].split()[0])


def _check_answers(
    both: Sequence[Peer], children: Children, prepared: box.Prepared, folder: Path
) -> None:
    """The same requests get the same statuses, codes and members from both."""
    answers = []
    for peer in both:
        child = peer.serve(fresh_copy(peer.template, folder / "round"))
        answers.append([_answer(child, prepared, body) for body in _requests(prepared)])
        children.stop(child)
    for body, ours, theirs in zip(_requests(prepared), *answers, strict=True):
        if ours != theirs:
            raise BenchError(f"the peers differ on {body!r}: {ours} and {theirs}")


def _answer(child: Child, prepared: box.Prepared, body: bytes) -> tuple[object, ...]:
    status, raw = ask(child, "POST", "/v1/reservations", body, prepared.partner_headers)
    answer = json.loads(raw)
    if status >= 300:
        return status, answer["code"]
    return status, sorted(answer), answer["status"], answer["notifications"]


def _requests(prepared: box.Prepared) -> list[bytes]:
    date = prepared.plan.load_dates()[-1].isoformat()
    good: dict[str, object] = {
        "tableId": prepared.plan.tables[0], "date": date, "slot": venue.slots()[0], "guests": 2,
        "customer": {"name": "Salma Bennani", "email": "salma@example.com"},
        "idempotencyKey": "same-1", "notifyCustomer": False,
    }  # fmt: skip
    changes: list[dict[str, object]] = [
        {}, {}, {"idempotencyKey": "same-2"}, {"idempotencyKey": "same-3", "slot": None},
        {"date": "2026-13-01"}, {"date": "2020-01-01", "idempotencyKey": "same-4"},
        {"slot": "25:00"}, {"slot": "12:01", "idempotencyKey": "same-5"}, {"tableId": "x"},
        {"tableId": "00000000-0000-4000-8000-000000000000", "idempotencyKey": "same-6"},
        {"guests": 0}, {"guests": 9, "idempotencyKey": "same-7"}, {"customer": {}},
        {"customer": {"name": "S"}}, {"customer": {"name": "S", "email": "s"}},
        {"idempotencyKey": ""}, {"notes": "x" * 501},
        {"idempotencyKey": "same-8", "slot": venue.slots()[1]},
    ]  # fmt: skip
    return [b"{", *(json.dumps({**good, **change}).encode() for change in changes)]


def _report(
    found: dict[tuple[str, int], list[Booked]],
) -> tuple[str, dict[str, float], list[Target]]:
    head = f"{'booking until its webhook is recorded':<38}{'req/s':>8}{'p50 ms':>8}{'p99 ms':>8}"
    lines = [f"{head}{'CPU µs':>8}{'KiB':>6}"]
    for (name, connections), rounds in found.items():
        lines.append(
            f"{name + ' at ' + str(connections):<38}"
            + "".join(
                f"{statistics.median(value):>{width}.{digits}f}"
                for value, width, digits in (
                    ([each.load.rate for each in rounds], 8, 0),
                    ([each.load.p50 for each in rounds], 8, 2),
                    ([each.load.p99 for each in rounds], 8, 2),
                    ([each.cpu_us for each in rounds], 8, 0),
                    ([each.written_kib for each in rounds], 6, 0),
                )
            )
        )
    ratios: dict[str, float] = {}
    for connections in CONNECTIONS:
        pairs = list(zip(found["venuebox", connections], found["plain", connections], strict=True))
        ratios[f"rate at {connections}"] = statistics.median(
            a.load.rate / b.load.rate for a, b in pairs
        )
        ratios[f"p99 at {connections}"] = statistics.median(
            a.load.p99 / b.load.p99 for a, b in pairs
        )
        ratios[f"processor at {connections}"] = statistics.median(
            a.cpu_us / b.cpu_us for a, b in pairs
        )
    written = statistics.median(each.written_kib for each in found["venuebox", 1])
    targets: list[Target] = [
        _target(ratios, "rate at 32", 3.0, least=True),
        _target(ratios, "p99 at 32", 0.4, least=False),
        _target(ratios, "rate at 1", 1.3, least=True),
        _target(ratios, "processor at 32", 0.5, least=False),
        _target(ratios, "processor at 1", 1.0, least=False),
        (f"{written:.0f} KiB written for a booking at 1, at most 60", written <= 60),
    ]
    return "\n".join(lines), ratios, targets


def _target(ratios: dict[str, float], name: str, bound: float, *, least: bool) -> Target:
    ratio = ratios[name]
    held = ratio >= bound if least else ratio <= bound
    return f"plain: {name} {ratio:.2f} ×, at {'least' if least else 'most'} {bound:.2f}", held


def main() -> int:
    """The table alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=data))
    try:
        with Children(folder).all_ended() as children:
            prepared = box.prepare(children, folder, peers.serve_receiver(children))
            table, _, targets = measure(
                children, prepared, folder, options.rounds, options.seconds, Progress()
            )
    finally:
        shutil.rmtree(folder)
    print(table)
    for sentence, held in targets:
        print(f"{'holds ' if held else 'MISSED'}  {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
