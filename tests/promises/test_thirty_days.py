"""Thirty days in time-lapse, in 256 MiB and with 256 files: nothing grows.

30 days in `make soak`, else 3. MONTH_DAYS chooses otherwise.
"""

import asyncio
import os
import time
import uuid
from contextlib import closing, suppress
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import apsw
import pytest
from aiohttp import web

from tests.journeys.box_process import STOP_SECONDS, found_box
from tests.journeys.partner_side import Receiver, calling
from tests.promises.checker import read_rows
from tests.promises.leaping_time import FILES, MEMORY, LeapingTime
from tests.soak.scale import FULL, Progress, tell

pytestmark = [pytest.mark.slow, pytest.mark.process]

DAYS = int(os.environ.get("MONTH_DAYS", "30" if FULL else "3"))
WARM = 5  # days after which no job runs for the first time
DRIFT = 0.05
# The growth of the allocator and of SQLite's caches: in 120 days it rose to 16 MB and fell again.
# Python's objects grew by 15 kB a day, up to a bound.
SLACK = 16 << 20
_LOOKS = 10
KEPT_OPEN = 2  # SQLite keeps files open that another connection has locked
GUESTS = 8 if FULL else 4
STEPS = 24 if FULL else 8  # per day; due jobs run after each step
WAL_BYTES, LOG_BYTES = 64 << 20, 50 << 20
PATIENCE = 60.0


class Neighbour(Receiver):
    """A receiver and mail server with the box's clock."""

    def __init__(self, time):
        super().__init__()
        self._time = time

    async def _receive(self, request):
        await request.read()
        self.received.append(request.headers["X-Service-Delivery"])
        return web.Response(status=204, headers={"Date": formatdate(self._time.now(), usegmt=True)})


@dataclass(frozen=True)
class Size:
    """The resources of a box after a day, in bytes, and its number of open files."""

    resident: int
    peak: int
    files: int
    log: int
    said: int


def measure(box):
    """Measure the process and its files."""
    process = Path("/proc") / str(box.pid)
    lines = (process / "status").read_text("ascii").splitlines()
    held = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    logs = [path.stat().st_size for path in (box.data / "log").glob("**/*") if path.is_file()]
    return Size(
        resident=int(held["VmRSS"][0]) << 10,
        peak=int(held["VmHWM"][0]) << 10,
        files=min(map(count_files, [process] * _LOOKS)),
        log=sum(path.stat().st_size for path in box.data.glob("*.db-wal")),
        said=sum(logs) + box.log.stat().st_size,
    )


def count_files(process):
    """Count the open files. The checks open the databases for a moment, every five minutes."""
    time.sleep(0.2)
    return sum(1 for _ in (process / "fd").iterdir())


def is_at_rest(box):
    """Whether the nightly jobs have closed all files."""
    files = (Path("/proc") / str(box.pid) / "fd").iterdir()
    with suppress(FileNotFoundError):  # closed in the meantime
        return not any("/backups" in str(file.readlink()) for file in files)
    return False


def backups(box):
    return {path.name for path in (box.data / "backups").glob("*.tar.age")}


def are_recorded(box, sent):
    """Whether the box has recorded this many deliveries and none is pending.

    A leap before that would count as the duration of the last attempt.
    """
    with (
        suppress(apsw.BusyError),
        closing(apsw.Connection(str(box.data / "live.db"), apsw.SQLITE_OPEN_READONLY)) as rows,
    ):
        rows.set_busy_timeout(1000)
        counted = rows.execute("SELECT count(*), total(state = 'pending') FROM delivery")
        made, pending = next(iter(counted))
        return made >= sent and not pending
    return False


async def until(is_so, otherwise):
    """Wait for the condition, at most a minute."""
    for _ in range(int(PATIENCE / 0.02)):
        if is_so():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(otherwise)


async def have_an_evening(partner, door, tables, day):
    """Book, cancel, check in, undo one check-in, and read the terminal's lists."""
    evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
    booked = []
    for number, table in enumerate(tables[:GUESTS]):
        booked.append(await partner.must(201, "POST", "/v1/reservations", {
            "tableId": table["id"], "date": evening, "guests": 2, "notifyCustomer": False,
            "customer": {"name": "Salma", "phone": "+212600000001"},
            "idempotencyKey": f"day-{day}-{number}",
        }))  # fmt: skip
    await partner.must(200, "DELETE", f"/v1/reservations/{booked[0]['serviceReservationId']}")
    for one in booked[1:]:
        scan_id = str(uuid.uuid4())
        body = {"scanId": scan_id, "code": one["guestAccessUrl"]}
        verdict = await door.must(200, "POST", "/terminal/v1/scans", body)
        assert verdict["result"] == "checked_in", verdict
    await door.must(200, "POST", f"/terminal/v1/scans/{scan_id}/undo", {"reason": "à la porte"})
    for path in ("evening", "snapshot"):
        await door.must(200, "GET", f"/terminal/v1/{path}")
    return len(booked) + 1 + len(booked) - 1  # made, cancelled, came


async def let_a_day_pass(time, box, door):
    """Advance the clock by a day; wait for due jobs and the nightly backup."""
    before = backups(box)
    for _ in range(STEPS):
        time.leap(86_400 / STEPS)
        await door.must(200, "GET", "/terminal/v1/me")  # wakes the event loop
        await asyncio.sleep(0.01)
    await until(lambda: backups(box) - before, "no backup was made in that night")
    await until(lambda: is_at_rest(box), "the night does not end")


async def test_resource_use_does_not_grow_over_many_days(tmp_path):
    founded, time = found_box(tmp_path, 12), LeapingTime(tmp_path)
    sizes, progress, sent = [], Progress("days"), 0
    async with Neighbour(time).running() as receiver:
        with time.box(founded, tmp_path, receiver.settings) as box:
            async with calling(box, founded, "live") as (partner, door):
                await partner.must(201, "POST", "/v1/webhooks", {"url": receiver.url("till")})
                tables = (await partner.must(200, "GET", "/v1/venue"))["tables"]
                for day in range(DAYS):
                    sent += await have_an_evening(partner, door, tables, day)
                    await until(lambda: are_recorded(box, sent), "a delivery is missing")  # noqa: B023
                    await let_a_day_pass(time, box, door)
                    sizes.append(measure(box))
                    progress(f"{day + 1} of {DAYS}, {sizes[-1]}")
            assert box.stop() < STOP_SECONDS

    found = list(complain(sizes))
    print(sizes[0], sizes[-1], sep="\n")
    tell("days in time-lapse", len(sizes), goal=DAYS, found=found)
    assert found == []
    assert box.complaints() == ""
    rows = read_rows(founded.data / "live.db")
    assert rows.integrity == ["ok"]
    assert {d["state"] for event in rows.events for d in event["deliveries"]} == {"delivered"}


def complain(sizes):
    """Return what grew beyond its limit."""
    last, warm = sizes[-1], sizes[min(WARM, len(sizes) // 2)]
    if len(sizes) > 2 * WARM and last.resident > warm.resident * (1 + DRIFT) + SLACK:
        yield f"memory grew from {warm.resident:,} to {last.resident:,} bytes"
    if last.files > warm.files + KEPT_OPEN:
        yield f"open files grew: {[size.files for size in sizes]}"
    if last.peak > MEMORY:
        yield f"it once held {last.peak:,} bytes"
    if max(size.files for size in sizes) > FILES // 2:
        yield f"it held {max(size.files for size in sizes)} of {FILES} files"
    if max(size.log for size in sizes) > WAL_BYTES:
        yield "the write-ahead log grew beyond 64 MiB"
    if last.said > LOG_BYTES:
        yield f"it wrote {last.said:,} bytes of logs"
