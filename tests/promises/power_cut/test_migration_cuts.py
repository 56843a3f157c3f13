"""A power cut during an upgrade or the next start leaves the old schema or the new one.

The real migration runs on the simulated disk and is cut after a random number of writes, perhaps
again while the next start recovers and retries. MIGRATION_CUT_SEED repeats a run.
"""

import asyncio
import os
import random

import apsw
import pytest

from appliance.database import migrate
from appliance.database.connection import configure
from tests.promises.power_cut.test_power_cuts import a_venue
from tests.promises.power_cut.vfs import NAME, Disk
from tests.soak.scale import FULL, Progress, tell

pytestmark = pytest.mark.slow

UPGRADES = 2_000 if FULL else 60
MOST_CUTS = 3  # in one upgrade
LIFE = 600  # changes to the disk before the upgrade
TABLES = "venue_table", "reservation", "api_key", "endpoint", "terminal", "event"
_COPY = """
CREATE TABLE extra_@ (a INTEGER PRIMARY KEY, b TEXT) STRICT;
INSERT INTO extra_@ (b) SELECT notes FROM reservation;
UPDATE reservation SET mood = 'm@';
"""
LATER = (
    "ALTER TABLE reservation ADD COLUMN mood TEXT; "
    + "".join(_COPY.replace("@", str(number)) for number in range(25)),
    "CREATE INDEX reservation_mood ON reservation (mood); DROP TABLE extra_3;",
)


@pytest.fixture
def start(vfs, monkeypatch, tmp_path):
    """Run a start on the files of a disk, until the power cut."""
    path = tmp_path / "live.db"
    path.touch()
    monkeypatch.setattr(migrate, "MIGRATIONS", LATER)

    def start(disk):
        vfs.disk = disk
        connection = connect()
        try:
            migrate.bring_up_to_date(connection, path)
        finally:
            connection.close()

    return start


def connect():
    connection = apsw.Connection("live.db", flags=apsw.SQLITE_OPEN_READWRITE, vfs=NAME)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    configure(connection)
    return connection


def content(vfs, files):
    """Return whether the file is intact, its schema number, and all earlier rows."""
    vfs.disk = Disk(files)
    connection = connect()
    try:
        sound = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        number = int(connection.pragma("user_version"))
        rows = {name: rows_of(connection, name) for name in TABLES}
        return sound, number, rows
    finally:
        connection.close()


def rows_of(connection, table):
    """Return the rows without the column that the upgrade adds."""
    cursor = connection.execute(f"SELECT * FROM {table} ORDER BY 1")  # noqa: S608 - one of ours
    names = [name for name, _ in cursor.getdescription()]
    return [{n: v for n, v in zip(names, row, strict=True) if n != "mood"} for row in cursor]


def test_an_upgrade_interrupted_at_any_write_leaves_the_old_or_the_new_schema(
    vfs, furnished, start
):
    seed = os.environ.get("MIGRATION_CUT_SEED") or f"{random.SystemRandom().randrange(10**9)}"
    draw, progress = random.Random(seed), Progress(f"migration cuts, seed {seed}")
    venue = a_venue(vfs, furnished, seed)
    asyncio.run(venue.live_until_a_cut(LIFE))
    _, old, before = content(vfs, venue.files)
    assert before["reservation"]
    whole = Disk(venue.files)
    start(whole)
    found, left, cuts = [], set(), 0

    for upgrade in range(UPGRADES):
        files = venue.files
        for _ in range(draw.randint(1, MOST_CUTS)):
            disk = Disk(files, cut_after=draw.randint(0, whole.changes))
            try:
                start(disk)
            except apsw.IOError:
                cuts += 1
            files = disk.after_a_cut(draw)
            sound, number, rows = content(vfs, files)
            left.add(number)
            if sound != ["ok"] or number not in {old, old + 2} or rows != before:
                found.append(f"upgrade {upgrade}: schema {number}, {sound[:2]}")
        last = Disk(files)
        start(last)
        sound, number, rows = content(vfs, {n: bytes(f.live) for n, f in last.files.items()})
        if (sound, number, rows) != (["ok"], old + 2, before):
            found.append(f"upgrade {upgrade}: not finished at the next start")
        progress(f"{cuts} cuts in {upgrade + 1} upgrades")

    tell("cuts in upgrades", cuts, seed=seed, found=found)
    assert found == [], f"MIGRATION_CUT_SEED={seed} repeats it"
    assert left == {old, old + 2}
    assert cuts >= UPGRADES / 2
