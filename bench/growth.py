"""Compare the same requests to boxes with zero to a million past reservations.

`python -m bench.growth` gives copies of one box past evenings: reservations of which a tenth
was cancelled, their holds, requests and history, the scan log, and thirty days of events and
deliveries. It loads the boxes in turn, and in the next round the other way round. All of them have
the same evenings to read, to book and to scan.
"""

import argparse
import os
import shutil
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from statistics import median

import apsw

from bench.beside_plain import (
    DATES,
    TABLES,
    BenchError,
    Prepared,
    bench_folder,
    open_receiver,
    prepare_box,
    run_load,
    start_box,
    write_bookings,
)
from tests.app.terminal_bridge.many_doors import expect

SIZES = (0, 10_000, 100_000, 1_000_000)
AN_EVENING = 4 * TABLES  # reservations
GUESTS = 40_000
CONNECTIONS = 8
BATCH = 50_000
BOOK, SCAN = "POST /v1/reservations", "POST /terminal/v1/scans"

# Number n of the past: 240 an evening, four to a table, an hour each from 16:00 on.
_RESERVATIONS = f"""
INSERT INTO reservation (id, status, source, table_id, date, slot, starts, ends, guests, pass_id,
    arrived, checked_in_at, cancelled_at, link_expires_at, created_at, updated_at, external_ref)
WITH RECURSIVE
    number (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM number WHERE n + 1 < :last),
    place AS (SELECT n, n % 10 = 0 AS cancelled, 960 + n % {AN_EVENING} / {TABLES} * 60 AS starts,
        date(:tonight, '-' || (:evenings - n / {AN_EVENING}) || ' days') AS date FROM number),
    timed AS (SELECT *, unixepoch(date) * 1000 AS midnight FROM place)
SELECT printf('%08x-0000-7000-8000-%s', n, lower(hex(randomblob(6)))),
    iif(cancelled, 'cancelled', 'completed'), 'partner', venue_table.id, date,
    printf('%02d:00', starts / 60), starts, starts + 60, 2, randomblob(8), iif(cancelled, 0, 2),
    iif(cancelled, NULL, midnight + starts * 60000), iif(cancelled, midnight, NULL),
    midnight + 129600000, midnight - 864000000, midnight - 864000000, 'P-' || n
FROM timed JOIN venue_table ON position = n % {TABLES}
ORDER BY n"""
_OF_EACH = """
INSERT INTO booking_request (reservation_seq, lineage, idempotency_key, issued_code, email_outcome)
    SELECT seq, 'past', external_ref, 'SVC-2222', 'skipped' FROM reservation WHERE seq > :after;
INSERT INTO hold (date, table_id, starts, ends, reservation_seq, source)
    SELECT date, table_id, starts, ends, seq, source FROM reservation
    WHERE seq > :after AND status = 'completed';
INSERT INTO history (reservation_id, at, what, actor)
    SELECT id, created_at, 'created', 'key:past' FROM reservation WHERE seq > :after;
INSERT INTO scan_log (scan_id, terminal_id, at, kind, reservation_id, result, admitted, verdict)
    SELECT lower(hex(randomblob(16))), (SELECT id FROM terminal), checked_in_at, 'pass', id,
        'checked_in', guests, :verdict
    FROM reservation WHERE seq > :after AND status = 'completed';
INSERT INTO event (type, reservation_id, occurred_at)
    SELECT 'reservation.created', id, checked_in_at FROM reservation
    WHERE seq > :after AND checked_in_at > :kept;
INSERT INTO delivery (id, endpoint_id, event_seq, state, attempts, due_at, finished_at)
    SELECT lower(hex(randomblob(16))), endpoint.id, event.seq, 'delivered', 1, occurred_at,
        occurred_at + 40
    FROM event, endpoint WHERE event.seq > :event;
INSERT INTO attempt (delivery_seq, n, at, duration_ms, phase, outcome, http_status, charged)
    SELECT seq, 1, due_at, 40, 'done', 'delivered', 200, 1 FROM delivery WHERE event_seq > :event"""


@dataclass
class Aged:
    """A box and its measurements by request: p50 in ms and processor time in µs."""

    rows: int
    data: Path
    reached: dict[str, int] = field(default_factory=dict)
    p50: dict[str, list[float]] = field(default_factory=dict)
    cpu_us: dict[str, list[float]] = field(default_factory=dict)
    starts: list[float] = field(default_factory=list)
    mib: list[float] = field(default_factory=list)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="past reservations")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    with bench_folder() as folder, open_receiver() as port:
        prepared = prepare_box(folder, port)
        crowd = expect(prepared.data, GUESTS, seed=1)
        texts = [party.text for party in crowd.parties]
        lines = _write_lines(folder, prepared, texts)
        boxes = []
        for rows in (size for size in SIZES if size <= options.most):
            boxes.append(Aged(rows, folder / f"past-{rows}"))
            shutil.copytree(prepared.data, boxes[-1].data)
            _fill_past(boxes[-1].data / "live.db", prepared, rows)
            print(f"{rows:,} past reservations are written", file=sys.stderr, flush=True)
        for number in range(options.rounds):
            for aged in boxes if number % 2 == 0 else reversed(boxes):
                _measure(aged, prepared, lines, options.seconds)
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    _report(boxes, lines)
    return 0


def _write_lines(folder: Path, prepared: Prepared, texts: list[str]) -> dict[str, Path]:
    """Write the requests of each load. Return their files by name."""
    days = [prepared.tonight + timedelta(days=2 + day) for day in range(0, DATES, 7)]
    key, door = prepared.key, prepared.terminal
    read = {
        "GET /v1/availability": [f"/v1/availability?date={day} {key}" for day in days],
        "GET /v1/reservations": [
            f"/v1/reservations?from={day}&to={day + timedelta(days=6)} {key}" for day in days
        ],
        "GET /terminal/v1/evening": [f"/terminal/v1/evening?date={days[0]} {door}"],
    }
    files = {}
    for number, (name, paths) in enumerate(read.items()):
        files[name] = folder / f"read-{number}"
        files[name].write_text("".join(f"GET {path}\n" for path in paths))
    files[SCAN] = folder / "scans"
    with files[SCAN].open("w") as file:
        for n, text in enumerate(texts):
            file.write(f'{SCAN} {door} {{"scanId":"wrk-{n}","code":"{text}"}}\n')
    return files | {BOOK: write_bookings(prepared, folder / "bookings")}


def _fill_past(database: Path, prepared: Prepared, rows: int) -> None:
    """Write `rows` past reservations, with their related rows, into a stopped box."""
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -500000")
    month = datetime.combine(prepared.tonight - timedelta(days=29), time(), UTC)
    values: dict[str, str | int] = {
        "tonight": prepared.tonight.isoformat(), "evenings": rows // AN_EVENING + 2,
        "kept": int(month.timestamp() * 1000), "verdict": '{"result":"checked_in"}' + " " * 600,
    }  # fmt: skip
    for first in range(0, rows, BATCH):
        after = connection.execute("SELECT coalesce(max(seq), 0) FROM reservation").get
        event = connection.execute("SELECT coalesce(max(seq), 0) FROM event").get
        with connection:
            connection.execute(
                _RESERVATIONS, values | {"first": first, "last": min(first + BATCH, rows)}
            )
            connection.execute(_OF_EACH, values | {"after": after, "event": event})
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _measure(aged: Aged, prepared: Prepared, lines: dict[str, Path], seconds: int) -> None:
    os.sync()  # this box does not wait for the disk writes of the previous one
    server = start_box(aged.data, prepared)
    aged.starts.append(server.start_seconds)
    for name, file in lines.items():
        warm = run_load(server, file, aged.reached.get(name, 0), 1, CONNECTIONS)
        cpu = server.cpu_seconds()
        load = run_load(server, file, warm.reached, seconds, CONNECTIONS)
        aged.reached[name] = load.reached
        aged.p50.setdefault(name, []).append(load.p50)
        used = 1e6 * (server.cpu_seconds() - cpu) / load.requests
        aged.cpu_us.setdefault(name, []).append(used)
    if aged.reached[SCAN] > GUESTS:
        raise BenchError("every guest is in: shorten the loads")
    aged.mib.append(server.resident_mib())
    server.stop()
    connection = apsw.Connection(str(aged.data / "live.db"))
    connection.execute("UPDATE delivery SET state = 'cancelled' WHERE state = 'pending'")
    connection.close()


def _report(boxes: list[Aged], lines: dict[str, Path]) -> None:
    empty, oldest = boxes[0], boxes[-1]
    print("| past reservations | " + " | ".join(f"{aged.rows:,}" for aged in boxes), end=" | ")
    print("processor, last / first |\n" + "|---" * (len(boxes) + 2) + "|")
    for name in lines:
        cells = " | ".join(
            f"{median(aged.p50[name]):.1f} ms, {median(aged.cpu_us[name]):,.0f} µs"
            for aged in boxes
        )
        pairs = zip(oldest.cpu_us[name], empty.cpu_us[name], strict=True)
        print(f"| {name}: p50, processor | {cells} | {median(a / b for a, b in pairs):.2f} × |")
    for words, cells in (
        ("start, s", [f"{median(aged.starts):.2f}" for aged in boxes]),
        ("resident memory, MiB", [f"{median(aged.mib):.0f}" for aged in boxes]),
    ):
        print(f"| {words} | {' | '.join(cells)} | |")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as trouble:
        sys.exit(f"bench: {trouble}")
