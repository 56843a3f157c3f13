"""Two writers and checkpoints of every kind at once: the log is begun anew under them (F11).

SQLite before 3.51.3 could lose commits then, and corrupt the file; no box starts with one of those.
HAMMER_SECONDS chooses how long: 120 in `make soak`, 2 in `make test`; an hour is the promise's.
"""

import asyncio
import os
import random
import subprocess
import sys
from contextlib import ExitStack

import apsw
import pytest

from tests.faults.checker import complaints
from tests.faults.rows import select
from tests.faults.world import faulty_world
from tests.soak.scale import FULL, tell

SECONDS = float(os.environ.get("HAMMER_SECONDS", "120" if FULL else "2"))
NAMES = ("one", "two")
COMMITTED = """SELECT actor, json_extract(detail, '$.number') AS number FROM security_log
               WHERE what = 'hammered'"""


@pytest.mark.proves("I1", "I7")
async def test_nothing_acknowledged_is_lost_while_the_log_is_begun_anew_all_the_time(tmp_path):
    seed = int(os.environ.get("HAMMER_SEED", random.randrange(10**6)))
    async with faulty_world(tmp_path, seed) as world:
        file = world.founded.data / "live.db"
        working = asyncio.create_task(world.load.run(world.partner, world.door))
        told, resets = await asyncio.to_thread(hammer, file)
        world.load.stop()
        await working
        await world.load.ask_again(world.partner, world.door)
        await world.settle()
        found = complaints(world.history, world.rows(), world.receiver.received, final=True)
        found += lost(file, told)
        assert await asyncio.to_thread(world.box.stop) < 10
        said = world.box.complaints()

    commits = sum(map(len, told.values()))
    print(f"{world.history.count()}, {commits} commits and {resets} new logs beside the box")
    tell("commits beside a box whose log is begun anew", commits, seed=seed, found=found)
    assert found == []
    assert said == ""
    assert min(len(numbers) for numbers in told.values()) > 2, "hardly anything was tried"
    assert resets > 2, "the log was hardly ever begun anew"


def hammer(file):
    """What each says that it committed, and how often the log began anew."""
    with ExitStack() as ends:
        hammers = {
            name: ends.enter_context(subprocess.Popen(
                [sys.executable, "-m", "tests.faults.hammering", file, str(SECONDS), name],
                stdout=subprocess.PIPE, text=True,
            ))
            for name in NAMES
        }  # fmt: skip
        for process in hammers.values():
            ends.callback(process.kill)
        said = {name: process.communicate()[0].split() for name, process in hammers.items()}
        assert [process.returncode for process in hammers.values()] == [0, 0]
    return {name: words[:-1] for name, words in said.items()}, sum(
        int(words[-1]) for words in said.values()
    )


def lost(file, told):
    """I1: what was committed is there, once."""
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = select(connection, COMMITTED)
    finally:
        connection.close()
    for name, numbers in told.items():
        kept = sorted(row["number"] for row in rows if row["actor"] == name)
        if kept != sorted(map(int, numbers)):
            yield f"I1: of {len(numbers)} commits of {name} {len(kept)} are there"
