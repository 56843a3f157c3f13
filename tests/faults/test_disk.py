"""A disk without room, and a disk that fails: nothing is acknowledged that is not kept (F5, F6)."""

import asyncio
import resource
import shutil
import time

from tests.faults.checker import complaints
from tests.faults.rows import read_rows
from tests.faults.small_disk import Filler, on_small_disk, unshare
from tests.faults.world import TABLES, faulty_world
from tests.journeys.box_process import template_box

EXPECTED_REFUSALS = {(409, "TABLE_TAKEN"), (503, "UNAVAILABLE")}


def refusals(history):
    """Everything that was answered and is no acknowledgement."""
    calls = (*history.bookings.values(), *history.cancels.values(), *history.scans.values())
    return [answer for call in calls for answer in call.answers if answer[0] >= 400]


def check_refusals(history):
    """Only documented ones, each with the body of section 7."""
    found = refusals(history)
    assert {(status, body["code"]) for status, body in found} <= EXPECTED_REFUSALS
    assert all(body["error"] and body["error_en"] for _, body in found)
    return [body for status, body in found if status == 503]


async def test_a_disk_that_fails_under_load_ends_the_box_and_loses_nothing(tmp_path):
    """A file that may not grow fails as a broken disk does: the write is no question of room."""
    async with faulty_world(tmp_path, 11) as world:

        def fail():
            limit = (world.founded.data / "live.db-wal").stat().st_size
            resource.prlimit(world.box.pid, resource.RLIMIT_FSIZE, (limit, limit))
            return world.box.wait()

        status = await world.load_until(0.6, fail)

        assert status == 1
        assert world.box.complaints().count("the disk failed") == 1
        check_refusals(world.history)
        await world.restart()
        await world.load.ask_again(world.partner, world.door)
        await world.settle()
        found = complaints(world.history, world.rows(), world.receiver.received, final=True)
        assert found == []


async def fill_and_free(world):
    """Load before, while and after the volume is full: refused first, granted again after."""
    filler = Filler(world.box.pid, world.founded.data)
    working = asyncio.create_task(world.load.run(world.partner, world.door))
    await asyncio.sleep(0.5)
    await asyncio.to_thread(filler.fill)
    await until(lambda: len(check_refusals(world.history)) > 10, "the volume was never full")
    assert (await world.partner("GET", "/v1/venue"))[0] == 200, "it no longer even reads"
    await asyncio.to_thread(filler.free)
    before = granted(world)
    await until(lambda: granted(world) > before + 10, "nothing was granted once there was room")
    world.load.stop()
    await working


def granted(world):
    """How many bookings were acknowledged."""
    return world.history.count()["bookings"]


async def until(condition, otherwise):
    """Let the load go on until its log shows this."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, otherwise
        await asyncio.sleep(0.05)


async def rows_on_small_disk(world, tmp_path):
    """The rows of a database that only the box's process sees, once nothing is written to it."""
    for seconds in (0.5,) * 20:
        await asyncio.sleep(seconds)
        for name in ("live.db", "live.db-wal"):
            shutil.copy(f"/proc/{world.box.pid}/root{world.founded.data}/{name}", tmp_path / name)
        rows = read_rows(tmp_path / "live.db")
        (tmp_path / "live.db-shm").unlink(missing_ok=True)
        states = {one["state"] for event in rows.events for one in event["deliveries"]}
        if "pending" not in states:
            break
    return rows


if unshare() is not None:  # elsewhere the failing disk above has to do

    async def test_a_full_disk_is_refused_in_our_words_and_the_box_recovers_by_itself(tmp_path):
        wrapper = on_small_disk(tmp_path / "box", template_box(TABLES).data)
        async with faulty_world(tmp_path, 13, wrapper=wrapper) as world:
            await fill_and_free(world)

            await world.load.ask_again(world.partner, world.door)
            rows = await rows_on_small_disk(world, tmp_path)
            found = complaints(world.history, rows, world.receiver.received, final=True)
            assert found == []
            assert await asyncio.to_thread(world.box.stop) < 10
