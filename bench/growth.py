"""What the past costs: the same loads on boxes with nothing to a million reservations behind them.

All boxes hold the same evenings to read and to scan; only the past differs. They are loaded in
turn at 32 connections, where the work of a request shows and the waiting for the disk is shared
by a group commit. Deliveries are timed one by one on a box that does nothing else. What is asked
of the oldest box beside the empty one is measured in more rounds of these two, for the disk of a
small machine differs from second to second by more than the fifth that is allowed.
"""

import http.client
import json
import os
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from bench import box, past
from bench.children import BenchError, Child, Children, ask
from bench.load import Load
from bench.progress import Progress
from bench.rounds import warm_and_measure
from bench.venue import Plan, slots

BOOK, SCAN, EVENING = "POST", "scan", "evening list"
READ, LIST, DELIVERY = "availability", "list page", "webhook"
SIZES = (0, 1_000, 10_000, 100_000, 1_000_000)
SECONDS = 2
ROUNDS = 2
CLOSE_ROUNDS = 4  # of the writing loads on the empty and the oldest box
_DELIVERIES = 100
_PAUSE = 0.01  # seconds between two bookings whose deliveries are timed


@dataclass
class Aged:
    """One of the boxes, and how far its loads have come."""

    rows: int
    folder: Path
    reached: dict[str, int] = field(default_factory=lambda: {BOOK: 0, SCAN: 0})
    answered: dict[str, int] = field(default_factory=lambda: {BOOK: 0, SCAN: 0})
    loads: int = 0
    figures: dict[str, list[Load]] = field(default_factory=dict)
    starts: list[float] = field(default_factory=list)  # seconds to the first answer

    def note(self, name: str, load: Load) -> None:
        """Keep what one load showed."""
        self.figures.setdefault(name, []).append(load)


def measure(
    children: Children, prepared: box.Prepared, folder: Path, most: int, progress: Progress
) -> list[Aged]:
    """Fills, then loads the boxes in turn, and in the next round the other way round."""
    boxes = [Aged(rows, folder / f"past-{rows}") for rows in SIZES if rows <= most]
    for each in boxes:
        shutil.copytree(prepared.folder, each.folder)
        if each.rows:
            progress.say(f"  writing {each.rows:,} past reservations")
            past.fill_past(
                each.folder / "live.db", prepared.plan, box.lineage(prepared.folder), each.rows,
                lambda _: None,
            )  # fmt: skip
    os.sync()
    for number in range(ROUNDS):
        progress.say(f"round {number + 1} of {ROUNDS}")
        for each in boxes if number % 2 == 0 else reversed(boxes):
            _round(children, prepared, each, _loads(prepared), progress)
    written = [load for load in _loads(prepared) if load.name in (SCAN, BOOK)]
    for number in range(CLOSE_ROUNDS):
        progress.say(f"closer round {number + 1} of {CLOSE_ROUNDS}")
        ends = (boxes[0], boxes[-1])
        for each in ends if number % 2 == 0 else reversed(ends):
            _round(children, prepared, each, written, progress)
    for each in boxes:
        box.check_bookings(each.folder, each.answered[BOOK], each.loads)
        box.check_scans(each.folder, prepared.plan.tonight, each.answered[SCAN], each.loads)
    return boxes


@dataclass(frozen=True)
class _Wanted:
    """One load of a round; without a script it is deliveries, timed one by one."""

    name: str
    script: str
    environment: Mapping[str, str]


def _loads(prepared: box.Prepared) -> list[_Wanted]:
    partner, door = prepared.as_partner(), prepared.as_terminal()
    lists = prepared.lists
    return [
        _Wanted(LIST, "read.lua", {**partner, "BENCH_PATHS": lists["BENCH_LIST"]}),
        _Wanted(READ, "read.lua", {**partner, "BENCH_PATHS": lists["BENCH_AVAILABILITY"]}),
        _Wanted(EVENING, "read.lua", {**door, "BENCH_PATHS": lists["BENCH_EVENING"]}),
        _Wanted(DELIVERY, "", partner),
        _Wanted(SCAN, "scan.lua", {**door, "BENCH_PATH": "/terminal/v1/scans"}),
        _Wanted(BOOK, "book.lua", {**partner, "BENCH_PATH": "/v1/reservations"}),
    ]


def _round(
    children: Children,
    prepared: box.Prepared,
    aged: Aged,
    wanted: Sequence[_Wanted],
    progress: Progress,
) -> None:
    os.sync()  # what the box before it wrote is not this one's to wait for
    begun = time.monotonic()
    child = box.serve(children, aged.folder, prepared)
    aged.starts.append(time.monotonic() - begun)
    for each in wanted:
        if not each.script:
            aged.note(each.name, _deliveries(child, prepared, aged))
            continue
        start = aged.reached.get(each.name, 0)
        warm, load = warm_and_measure(child, each.script, SECONDS, each.environment, start)
        aged.note(each.name, load)
        if each.name in aged.reached:
            aged.reached[each.name] = load.reached
            aged.answered[each.name] += warm.requests + load.requests
    for each in wanted:
        progress.load(f"{aged.rows:,} past: {each.name}", aged.figures[each.name][-1])
    aged.loads += 2
    if aged.reached[SCAN] > past.supply():
        raise BenchError(f"the scans used up their {past.supply()} passes: shorten the rounds")
    children.stop(child)
    box.drop_backlog(aged.folder)


def _deliveries(child: Child, prepared: box.Prepared, aged: Aged) -> Load:
    """From the request of a booking to its webhook at the receiver, one after the other."""
    receiver = prepared.receiver
    ask(receiver, "GET", "/arrivals")
    connection = http.client.HTTPConnection("127.0.0.1", child.port, timeout=10)
    cpu, begun, sent = child.cpu_seconds(), time.monotonic(), {}
    for body in _bookings(prepared.plan, aged.reached[BOOK]):
        asked = time.monotonic()
        connection.request("POST", "/v1/reservations", json.dumps(body), prepared.partner_headers)
        answer = connection.getresponse()
        said = json.loads(answer.read())
        if answer.status != HTTPStatus.CREATED:
            raise BenchError(f"a booking was answered {answer.status}: {said}")
        sent[said["serviceReservationId"]] = asked
        time.sleep(_PAUSE)
    connection.close()
    waits = sorted(_arrived(receiver, sent))
    aged.reached[BOOK] += len(sent)
    aged.answered[BOOK] += len(sent)
    return Load(
        requests=len(sent),
        rate=len(sent) / (time.monotonic() - begun),
        p50=statistics.median(waits),
        p99=waits[len(waits) * 99 // 100],
        longest=waits[-1],
        errors=0,
        cpu_us=1e6 * (child.cpu_seconds() - cpu) / len(sent),
        reached=aged.reached[BOOK],
        memory_mib=child.memory_mib(),
    )


def _arrived(receiver: Child, sent: dict[str, float], patience: float = 10.0) -> list[float]:
    """How long each took to arrive, in milliseconds."""
    found: dict[str, float] = {}
    deadline = time.monotonic() + patience
    while len(found) < len(sent):
        if time.monotonic() > deadline:
            raise BenchError(f"{len(sent) - len(found)} webhooks did not come in {patience:.0f} s")
        arrivals = json.loads(ask(receiver, "GET", "/arrivals")[1])
        found |= {about: at for about, at in arrivals.items() if about in sent}
        time.sleep(_PAUSE)
    return [(at - sent[about]) * 1000 for about, at in found.items()]


def _bookings(plan: Plan, start: int) -> Iterator[dict[str, object]]:
    """Numbers of the plan from `start` on, as lua/book.lua makes them."""
    dates: Sequence[object] = plan.load_dates()
    for n in range(start, start + _DELIVERIES):
        rest, date = divmod(n, len(dates))
        yield {
            "tableId": plan.tables[rest % len(plan.tables)],
            "date": str(dates[date]),
            "slot": slots()[rest // len(plan.tables) % len(slots())],
            "guests": 2,
            "customer": {"name": "Salma Bennani", "phone": "+212600000000"},
            "externalRef": f"B-{n}",
            "idempotencyKey": f"bench-{n}",
            "notifyCustomer": False,
        }
