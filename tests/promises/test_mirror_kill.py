"""Boxes and their mirror's server are killed repeatedly, and the mirror equals every box.

A million changes of 20 boxes with 100 kills in `make soak`; 6,000 of 3 with 6 by default.
"""

import os
import random
import subprocess
import sys
import time
from functools import partial

import pytest

from appliance.clock import SystemClock, newest_zone_database
from appliance.core.settings import MirrorSettings
from appliance.database.connection import Reader, open_connection
from appliance.mirror.compare import compare
from tests.promises import mirrored_box
from tests.promises.postgres import Postgres
from tests.soak.scale import FULL, Progress, tell

BOXES, CHANGES, KILLS = (20, 50_000, 100) if FULL else (3, 2_000, 6)
SECONDS = 1150.0 if FULL else 120.0


@pytest.mark.slow
@pytest.mark.process
def test_after_kills_of_boxes_and_server_the_mirror_equals_every_box(tmp_path):
    seed = int(os.environ.get("KILL_SEED", random.randrange(10**6)))
    draw, progress = random.Random(seed), Progress(f"mirror, seed {seed}")
    server = Postgres().start()
    url, boxes, ends = server.create(), {}, {}
    until = time.monotonic() + SECONDS
    try:
        for number in range(BOXES):
            mirrored_box.create(tmp_path / str(number), seed + number)
            boxes[number] = start(tmp_path / str(number), url, number)
        kills = 0
        pause = 2.0 if FULL else 0.5
        while kills < KILLS and len(ends) < BOXES and time.monotonic() < until:
            time.sleep(draw.uniform(0, pause))
            ends |= {number: True for number, box in boxes.items() if box.poll() == 0}
            running = [number for number in boxes if number not in ends]
            if kills % 4 == 3:
                server.kill()
                time.sleep(draw.uniform(0, pause))
                server.start()
            elif running:
                number = draw.choice(running)
                boxes[number].kill()
                boxes[number].wait()
                boxes[number] = start(tmp_path / str(number), url, number)
            kills += 1
            progress(f"{kills} kills, {len(ends)} boxes are done")
        for box in boxes.values():
            assert box.wait(max(1, until - time.monotonic())) == 0
        found = [each for number in boxes for each in differences(tmp_path / str(number), url)]
        made = sum(count(tmp_path / str(number)) for number in boxes)
        tell("changes in the mirror", made, goal=BOXES * CHANGES, seed=seed, found=found)
        tell("kills of boxes and server", kills, goal=KILLS, seed=seed)
        assert found == [], f"KILL_SEED={seed} repeats the draws"
        assert made == BOXES * CHANGES
        assert kills >= KILLS // 2
    finally:
        for box in boxes.values():
            box.kill()
            box.wait()
        server.stop()


def start(folder, url, number, changes=CHANGES, rate=0):
    argv = [folder, url, number, changes, rate]
    with (folder / "said").open("ab") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.promises.mirrored_box", *map(str, argv)],
            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        )  # fmt: skip


def differences(folder, url):
    """Return the tables in which the mirror differs from the box."""
    contacts = int(folder.name) % 2 == 0
    tables, waiting = compare(partial(snapshot, folder), MirrorSettings(url, contacts))
    assert waiting == 0
    return [f"{folder.name}: {table}" for table in tables if not table.is_equal]


class snapshot:  # noqa: N801 - used as a function
    """Open a snapshot of a box's live database."""

    def __init__(self, folder):
        self._connection = open_connection(folder / "live.db", writable=False)

    def __enter__(self):
        self._connection.execute("BEGIN")
        return Reader(self._connection, SystemClock(), newest_zone_database())

    def __exit__(self, *_):
        self._connection.close()


def count(folder):
    with snapshot(folder) as reader:
        return reader.value("SELECT made FROM soak")
