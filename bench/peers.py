"""Who is measured at what: the box beside the bare handler."""

import json
import sys
from pathlib import Path

from bench import bare, box, past
from bench.children import Child, Children, free_port, wait_until_answers
from bench.rounds import Step

BOOK, READ, SCAN = "POST /v1/reservations", "GET /v1/availability", "POST /terminal/v1/scans"
PAGE = "GET /access (guest page)"
BARE_BOOK, BARE_READ, BARE_SCAN = "bare POST (booking)", "bare GET", "bare POST (scan)"
BARE_PAGE = "bare GET (page)"
DOORS = "8 doors scanning"


def steps(children: Children, prepared: box.Prepared, samples: Path, seconds: int) -> list[Step]:
    """The steps of one round, alike things next to each other."""
    tonight = prepared.plan.tonight
    book = {**prepared.as_partner(), "BENCH_PATH": "/v1/reservations"}
    read = {**prepared.as_partner(), "BENCH_PATHS": prepared.lists["BENCH_AVAILABILITY"]}
    scan = {**prepared.as_terminal(), "BENCH_PATH": "/terminal/v1/scans"}
    bookings, short = prepared.plan.bookings(), max(1, seconds - 2)

    def serve_box(folder: Path) -> Child:
        return box.serve(children, folder, prepared)

    def serve_bare(folder: Path) -> Child:
        del folder
        return _serve_bare(children, samples)

    def scans_are_right(folder: Path, answered: int, loads: int) -> None:
        box.check_scans(folder, tonight, answered, loads)

    data, page = prepared.folder, {**read, "BENCH_PATHS": prepared.lists["BENCH_PAGES"]}
    bare_read = {**read, "BENCH_PATHS": str(samples.parent / "BARE")}
    Path(bare_read["BENCH_PATHS"]).write_text(f"{bare.READ}\n")
    bare_page = {**read, "BENCH_PATHS": str(samples.parent / "BARE_PAGE")}
    Path(bare_page["BENCH_PATHS"]).write_text(f"{bare.PAGE}\n")
    return [
        Step(BARE_BOOK, None, serve_bare, "book.lua", {**book, "BENCH_PATH": bare.BOOK}, short),
        Step(BOOK, data, serve_box, "book.lua", book, seconds, box.check_bookings, bookings),
        Step(BARE_READ, None, serve_bare, "read.lua", bare_read, short),
        Step(READ, data, serve_box, "read.lua", read, short),
        Step(BARE_PAGE, None, serve_bare, "read.lua", bare_page, short),
        Step(PAGE, data, serve_box, "read.lua", page, short),
        Step(BARE_SCAN, None, serve_bare, "scan.lua", {**scan, "BENCH_PATH": bare.SCAN}, short),
        Step(SCAN, data, serve_box, "scan.lua", scan, seconds, scans_are_right, past.supply()),
        Step(DOORS, data, serve_box, "scan.lua", scan, short, scans_are_right, past.supply(), 8),
    ]  # fmt: skip


def take_samples(children: Children, prepared: box.Prepared, folder: Path) -> Path:
    """What the bare peer answers, path by path: the box's own answers, in size and shape."""
    child = box.serve(children, folder, prepared)
    answers = box.right_answers(child, prepared)
    children.stop(child)
    target = prepared.folder.parent / "samples.json"
    target.write_text(
        json.dumps(dict(zip((bare.BOOK, bare.READ, bare.SCAN, bare.PAGE), answers, strict=True)))
    )
    return target


def serve_receiver(children: Children) -> Child:
    """The partner's webhook receiver, for the whole run."""
    port = free_port()
    argv = [sys.executable, str(Path(__file__).with_name("receiver.py")), str(port)]
    child = children.start("receiver", argv, port)
    wait_until_answers(child, "/count")
    return child


def _serve_bare(children: Children, samples: Path) -> Child:
    port = free_port()
    argv = [sys.executable, str(Path(bare.__file__)), str(port), str(samples)]
    child = children.start("bare", argv, port)
    wait_until_answers(child, bare.READ)
    return child
