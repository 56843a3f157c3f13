"""The cost of a mirror: `python -m bench.mirror boxes` and `python -m bench.mirror bookings`.

`boxes`: 200 boxes without HTTP, 50 in a process, fill one PostgreSQL on a Unix socket, each with
some changes a second: changes a second, lag, and processor of the server for each change.
`bookings`: three real boxes book at a steady rate: without a mirror, with one, and with one whose
server hangs: its processor for each booking, and how long a booking takes.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import aiohttp

from tests.journeys.box_process import BoxProcess, found_box
from tests.promises import mirrored_box
from tests.promises.postgres import Postgres

TICKS = os.sysconf("SC_CLK_TCK")
BOXES, OF_A_PROCESS = 200, 50


def main() -> int:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("boxes", "bookings", "fill"))
    parser.add_argument("--changes", type=int, default=120, help="of each box")
    parser.add_argument("--rate", type=float, default=2.0, help="changes a second of each box")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.what == "fill":
        return _fill(options)
    if options.what == "boxes":
        return _boxes(options)
    return asyncio.run(_bookings(options.rounds))


def _boxes(options: argparse.Namespace) -> int:
    server = Postgres(max_connections="300").start()
    url = server.create()
    with tempfile.TemporaryDirectory(prefix="venuebox-mirror-") as name:
        folders = [Path(name) / str(number) for number in range(BOXES)]
        for number, folder in enumerate(folders):
            mirrored_box.create(folder, number)
        argv = [sys.executable, "-m", "bench.mirror", "fill", f"--changes={options.changes}"]
        argv += [f"--rate={options.rate}", "--folder", url]
        before, begun = server.processor(), time.monotonic()
        groups = [folders[n : n + OF_A_PROCESS] for n in range(0, BOXES, OF_A_PROCESS)]
        children = [subprocess.Popen([*argv, *map(str, group)]) for group in groups]
        if any(child.wait() for child in children):
            return 1
        seconds, spent = time.monotonic() - begun, server.processor() - before
        told = [json.loads((folder / "lags").read_text("utf-8")) for folder in folders]
        rows = server.ask("SELECT count(*) FROM venuebox.reservation")[0]
    server.stop()
    lags = sorted(lag for each in told for lag in each["lags"])
    made = BOXES * options.changes
    print(
        f"{BOXES} boxes, {made:,} changes in {seconds:.0f} s ({made / seconds:.0f} a second), "
        f"lag median {lags[len(lags) // 2]:.2f} s, p99 {lags[len(lags) * 99 // 100]:.2f} s, "
        f"server {spent / made * 1e6:.0f} µs of processor for each change, {rows} reservations"
    )
    return 0


def _fill(options: argparse.Namespace) -> int:
    async def all_boxes() -> None:
        url, *folders = options.folder
        lives = (
            mirrored_box.live(Path(folder), url, number, options.changes, options.rate, 1)
            for number, folder in enumerate(folders)
        )
        await asyncio.gather(*lives)

    asyncio.run(all_boxes())
    return 0


BOOKINGS, RATE, WARM = 900, 30.0, 100
KINDS = ("without", "with", "hanging")


async def _bookings(rounds: int) -> int:
    """Run three boxes together, so that other load on the machine slows all of them."""
    servers = {kind: Postgres().start() for kind in KINDS[1:]}
    urls = {kind: server.create() for kind, server in servers.items()}
    seen: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in KINDS}
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="venuebox-mirror-") as name, ExitStack() as stack:
            boxes, keys = {}, {}
            for kind in KINDS:
                folder = Path(name) / kind
                folder.mkdir()
                founded = found_box(folder, 150)
                more = {"VENUEBOX_MIRROR_URL": urls[kind]} if kind in urls else {}
                box = BoxProcess(founded.data, log=folder / "log", settings=more)
                boxes[kind], keys[kind] = stack.enter_context(box), founded.keys["live"]
            await asyncio.sleep(5)
            servers["hanging"].hang()
            stack.callback(servers["hanging"].wake)
            books = (_book(boxes[kind], keys[kind]) for kind in KINDS)
            found = dict(zip(KINDS, await asyncio.gather(*books), strict=True))
        for kind, (cpu, median, p99) in found.items():
            seen[kind].append((cpu / found["without"][0], median, p99))
            print(f"round {number + 1} {kind:8} {cpu:.0f} µs of processor for each booking, "
                  f"median {median:.1f} ms, p99 {p99:.1f} ms", flush=True)  # fmt: skip
    for server in servers.values():
        server.stop()
    for kind, rows in seen.items():
        cpu, median, p99 = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"{kind:8} {cpu:.2f} ×, median {median:.1f} ms, p99 {p99:.1f} ms (medians of rounds)")
    return 0


async def _book(box: BoxProcess, key: str) -> tuple[float, float, float]:
    """Return processor per booking in µs, and the median and p99 of a booking in ms."""
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(box.address, headers=headers) as session:
        async with session.get("/v1/venue") as answer:
            found = await answer.json()
        tables = [table["id"] for table in found["tables"]]
        took: list[float] = []

        async def book(number: int) -> None:
            day = f"2027-{1 + number // len(tables) % 12:02}-{1 + number // len(tables) // 12:02}"
            wish = {
                "tableId": tables[number % len(tables)], "date": day, "slot": "19:30", "guests": 2,
                "customer": {"name": "Salma Idrissi", "phone": "+212 600 000 001"},
                "idempotencyKey": str(number), "notifyCustomer": False,
            }  # fmt: skip
            begun = time.perf_counter()
            async with session.post("/v1/reservations", json=wish) as answer:
                assert answer.status == 201, await answer.text()
            took.append((time.perf_counter() - begun) * 1000)

        for number in range(WARM):
            await book(number)
        took.clear()
        before, begun, tasks = _processor(box.pid), time.perf_counter(), []
        for number in range(WARM, WARM + BOOKINGS):
            await asyncio.sleep(max(0, begun + (number - WARM) / RATE - time.perf_counter()))
            tasks.append(asyncio.create_task(book(number)))
        await asyncio.gather(*tasks)
        await asyncio.sleep(2)  # the time in which the mirror copies the last changes
        spent = _processor(box.pid) - before
    took.sort()
    return spent / BOOKINGS * 1e6, took[len(took) // 2], took[len(took) * 99 // 100]


def _processor(pid: int) -> float:
    """Return the seconds that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    sys.exit(main())
