"""The start-up time of a box, and its processor use when idle."""

import asyncio
import os
import re
from pathlib import Path

import aiohttp
import apsw
import pytest

from tests.journeys.box_process import BoxProcess, found_box
from tests.journeys.partner_side import Receiver, calling
from tests.soak.scale import FULL

# Connections to receivers stay open for 4 s after a delivery. A new box makes its first backup a
# minute after its start.
SETTLE_SECONDS = 90.0 if FULL else 5.0
WATCH_SECONDS = 600.0 if FULL else 6.5  # long enough to detect a timer of 10 s


def test_a_box_answers_within_seconds_of_its_start(tmp_path):
    """Measures processor time, which other load does not change. `make bench` measures waiting."""
    founded = found_box(tmp_path)

    with BoxProcess(founded.data, log=tmp_path / "box.log") as box:
        assert asyncio.run(first_answer(box, founded)) == 200
        used = usage(box.pid)["ticks"] / os.sysconf("SC_CLK_TCK")

    assert used < 5


async def first_answer(box, founded):
    async with calling(box, founded, "live") as (partner, _):
        status, _ = await partner("GET", "/v1/venue")
        return status


@pytest.fixture
async def furnished(tmp_path):
    """A box with guests tonight and a receiver that has received all deliveries."""
    founded = found_box(tmp_path)
    async with Receiver().running() as receiver:
        with BoxProcess(founded.data, log=tmp_path / "box.log", settings=receiver.settings) as box:
            async with calling(box, founded, "live") as (partner, door):
                hook = await partner.must(
                    201, "POST", "/v1/webhooks", {"url": receiver.url("live")}
                )
                receiver.secrets["live"] = hook["secret"]
                evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
                for table in (await partner.must(200, "GET", "/v1/venue"))["tables"]:
                    booked = await partner.must(
                        201, "POST", "/v1/reservations", a_booking(table["id"], evening)
                    )
                    await receiver.wait_for("reservation.created", booked["serviceReservationId"])
                scan = {"scanId": "s", "code": booked["guestAccessUrl"]}
                await door.must(200, "POST", "/terminal/v1/scans", scan)
            yield box


def a_booking(table, evening):
    return {
        "tableId": table,
        "date": evening,
        "guests": 2,
        "customer": {"name": "Salma", "phone": "0600000001"},
        "idempotencyKey": table,
        "notifyCustomer": False,
    }


async def test_an_idle_box_uses_no_processor_time_and_runs_no_timer(furnished):
    watcher = apsw.Connection(str(furnished.data / "live.db"), flags=apsw.SQLITE_OPEN_READONLY)
    before, commits = await at_rest(furnished.pid), watcher.pragma("data_version")

    await asyncio.sleep(WATCH_SECONDS)

    after = usage(furnished.pid)
    woken = sum(after["switches"].values()) - sum(before["switches"].values())
    print(f"\nidle {WATCH_SECONDS} s: {after['ticks'] - before['ticks']} ticks, {woken} wake-ups")
    assert after["ticks"] == before["ticks"]
    assert after["switches"] == before["switches"]
    assert watcher.pragma("data_version") == commits
    watcher.close()
    async with aiohttp.ClientSession() as session, session.get(furnished.address + "/openapi.json"):
        await asyncio.sleep(0.2)
    assert usage(furnished.pid)["switches"] != before["switches"], "a single request is not seen"


async def at_rest(pid):
    """Wait until the process was idle for two seconds; return its usage."""
    await asyncio.sleep(SETTLE_SECONDS)
    async with asyncio.timeout(60):
        before = None
        while before != (before := usage(pid)):  # noqa: ASYNC110 - another process
            await asyncio.sleep(2)
    return before


def usage(pid):
    """Return the processor time in ticks, and the voluntary switches of each thread."""
    process = Path(f"/proc/{pid}")
    fields = (process / "stat").read_text().rpartition(") ")[2].split()
    return {
        "ticks": int(fields[11]) + int(fields[12]),
        "switches": {
            thread.name: int(
                re.search(
                    r"^voluntary_ctxt_switches:\s+(\d+)",
                    (thread / "status").read_text(),
                    re.MULTILINE,
                )[1]
            )
            for thread in (process / "task").iterdir()
        },
    }
