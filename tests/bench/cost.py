"""What a million past reservations cost: the same loads on an old box and on a new one.

Both boxes hold the same evenings to read and to scan; only the past differs. The ratio is
of times: how much longer the old box needs for one request, at 32 connections, where the
work of a request shows and the waiting for the disk is shared by a group commit.
"""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import box, past
from tests.bench.children import BenchError, Children
from tests.bench.load import Load
from tests.bench.progress import Progress
from tests.bench.rounds import warm_and_measure

BOOK, LIST, SCAN, PAST_LIST = "POST", "list page", "scan", "list page of a past week"
NEW, OLD = "empty", "million"
SECONDS = 3


@dataclass
class Aged:
    """One of the two boxes, and how far its loads have come."""

    name: str
    folder: Path
    reached: dict[str, int] = field(default_factory=lambda: {BOOK: 0, SCAN: 0})
    answered: dict[str, int] = field(default_factory=lambda: {BOOK: 0, SCAN: 0})
    loads: int = 0
    figures: dict[str, list[Load]] = field(default_factory=dict)


def measure(
    children: Children,
    prepared: box.Prepared,
    folder: Path,
    rows: int,
    rounds: int,
    progress: Progress,
) -> tuple[Aged, Aged]:
    """Fills, then loads both boxes in turn; each round begins with the other one."""
    new, old = (Aged(name, folder / name) for name in (NEW, OLD))
    for each in (new, old):
        shutil.copytree(prepared.folder, each.folder)
    past.fill_past(
        old.folder / "live.db", prepared.plan, box.lineage(prepared.folder), rows,
        lambda done: progress.rows(done, rows),
    )  # fmt: skip
    os.sync()
    for number in range(rounds):
        progress.say(f"round {number + 1} of {rounds}")
        for each in (new, old) if number % 2 == 0 else (old, new):
            _round(children, prepared, each, progress)
    for each in (new, old):
        box.check_bookings(each.folder, each.answered[BOOK], each.loads)
        box.check_scans(each.folder, prepared.plan.tonight, each.answered[SCAN], each.loads)
    return new, old


def _round(children: Children, prepared: box.Prepared, aged: Aged, progress: Progress) -> None:
    child = box.serve(children, aged.folder, prepared)
    partner, door = prepared.as_partner(), prepared.as_terminal()
    loads = [
        (LIST, "read.lua", {**partner, "BENCH_PATHS": prepared.lists["BENCH_LIST"]}),
        (SCAN, "scan.lua", {**door, "BENCH_PATH": "/terminal/v1/scans"}),
        (BOOK, "book.lua", {**partner, "BENCH_PATH": "/v1/reservations"}),
    ]
    if aged.name == OLD:
        past_weeks = {**partner, "BENCH_PATHS": prepared.lists["BENCH_PAST_LIST"]}
        loads.insert(1, (PAST_LIST, "read.lua", past_weeks))
    for name, script, environment in loads:
        start = aged.reached.get(name, 0)
        warm, load = warm_and_measure(child, script, SECONDS, environment, start)
        aged.figures.setdefault(name, []).append(load)
        if name in aged.reached:
            aged.reached[name] = load.reached
            aged.answered[name] += warm.requests + load.requests
        progress.load(f"{aged.name}: {name}", load)
    aged.loads += 2
    if aged.reached[SCAN] > past.supply():
        raise BenchError(f"the scans used up their {past.supply()} passes: shorten the rounds")
    children.stop(child)
    box.drop_backlog(aged.folder)
