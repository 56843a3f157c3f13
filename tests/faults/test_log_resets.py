"""Two writers and checkpoints of every kind beside a box: the log is begun anew under them.

SQLite before 3.51.3 could lose commits then, and corrupt the file. No box starts with one of those.
HAMMER_SECONDS chooses how long: 120 in `make soak`, else 2.

`python -m tests.faults.test_log_resets DATABASE SECONDS NAME` is such a writer: each round is one
committed row of the security log and a checkpoint of any kind. It prints each row's number once it
is committed, and at the end how often the log was begun anew.
"""

import asyncio
import os
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest

from appliance.actions.note_security import note_security
from appliance.clock import SystemClock, newest_zone_database
from appliance.errors import Trouble
from appliance.store.connection import open_connection
from appliance.store.session import session
from appliance.tokens import Tokens
from tests.faults.checker import complaints
from tests.faults.rows import select
from tests.faults.world import faulty_world
from tests.soak.scale import FULL, tell

pytestmark = [pytest.mark.slow, pytest.mark.process]

SECONDS = float(os.environ.get("HAMMER_SECONDS", "120" if FULL else "2"))
NAMES = ("one", "two")
COMMITTED = """SELECT actor, json_extract(detail, '$.number') AS number FROM security_log
               WHERE what = 'hammered'"""
ANEW = (apsw.SQLITE_CHECKPOINT_RESTART, apsw.SQLITE_CHECKPOINT_TRUNCATE)
LEAST, AT_MOST = 3, 60.0
KINDS = (apsw.SQLITE_CHECKPOINT_PASSIVE, apsw.SQLITE_CHECKPOINT_FULL, *ANEW)


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
                [sys.executable, "-m", "tests.faults.test_log_resets", file, str(SECONDS), name],
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


def write_and_reset(path, seconds, name):
    path, draw, number = Path(path), random.Random(name), 0
    committed = resets = 0
    clock, zones = SystemClock(), newest_zone_database()
    folder = open_connection(path)
    begun = time.monotonic()
    until, last = begun + float(seconds), begun + max(float(seconds), AT_MOST)
    while time.monotonic() < (until if min(committed, resets) >= LEAST else last):
        number += 1
        try:
            with session(path, clock, Tokens(), zones) as tx:
                note_security(tx, name, "hammered", number=number)
        except Trouble as trouble:
            if "in use" not in str(trouble):
                raise
            continue
        committed += 1
        print(number, flush=True)
        kind = draw.choice(KINDS)
        try:
            folder.wal_checkpoint(mode=kind)
        except apsw.BusyError:
            continue  # somebody reads or writes: the next one will do
        resets += kind in ANEW
    print(resets)


if __name__ == "__main__":
    write_and_reset(*sys.argv[1:])
