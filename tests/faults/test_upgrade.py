"""An upgrade that is interrupted anywhere: the box starts, with its data, old or new (F27, F29).

UPGRADE_KILLS=200 in `make soak`; fewer in `make test`.
"""

import os
import random
import shutil
import subprocess
import sys
import time

import apsw
import pytest

from appliance.clock import StoppedClock
from appliance.errors import Trouble
from appliance.store import migrate as migrate_module
from appliance.store.connection import open_connection
from appliance.store.migrate import list_migrations, migrate
from appliance.store.start_check import check_before_serving
from tests.appliance.backup.making import a_box_with_guests
from tests.soak.scale import tell

KILLS = int(os.environ.get("UPGRADE_KILLS", "200" if os.environ.get("SOAK") else "12"))
EACH = """
CREATE TABLE extra_@ (a INTEGER PRIMARY KEY, b TEXT) STRICT;
INSERT INTO extra_@ (b) SELECT notes FROM reservation;
UPDATE reservation SET mood = 'm@';
"""
SECOND = "ALTER TABLE reservation ADD COLUMN mood TEXT; " + "".join(
    EACH.replace("@", str(number)) for number in range(25)
)
THIRD = "CREATE INDEX reservation_mood ON reservation (mood); DROP TABLE extra_3;"
CHILD = """
import sys
from pathlib import Path
from appliance.clock import SystemClock
from appliance.store import migrate as m
known = m.list_migrations()
m.list_migrations = lambda: [*known, (len(known) + 1, sys.argv[2]), (len(known) + 2, sys.argv[3])]
print("go", flush=True)
m.migrate(Path(sys.argv[1]), SystemClock())
print("done", flush=True)
"""


@pytest.fixture
def newer(monkeypatch):
    """A program that knows two schemas more."""
    known = list_migrations()
    wanted = [*known, (len(known) + 1, SECOND), (len(known) + 2, THIRD)]
    monkeypatch.setattr(migrate_module, "list_migrations", lambda: wanted)
    return len(wanted)


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return a_box_with_guests(tmp_path_factory.mktemp("old"), guests=60).root / "live.db"


def content(path):
    """The schema's number and every guest."""
    connection = open_connection(path, writable=False)
    try:
        guests = connection.execute("SELECT id, customer_name, status FROM reservation ORDER BY id")
        return int(connection.pragma("user_version")), guests.fetchall()
    finally:
        connection.close()


def a_copy(old, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(old, folder / "live.db")
    return folder / "live.db"


@pytest.mark.proves("I8")
def test_killed_at_any_instant_of_an_upgrade_the_box_starts_with_its_data(old, newer, tmp_path):
    draw = random.Random(3)
    found, guests = content(old)
    path = a_copy(old, tmp_path / "box")
    begun = time.monotonic()
    run_child(path).communicate()
    whole, outcomes = time.monotonic() - begun, set()

    for _ in range(KILLS):
        path = a_copy(old, tmp_path / "box")
        child = run_child(path)
        child.stdout.readline()
        time.sleep(draw.uniform(0, whole / 3))
        child.kill()
        child.wait()
        child.stdout.close()

        check_before_serving(path)
        version, kept = content(path)
        assert version in {found, newer}
        assert kept == guests
        outcomes.add(version)
        assert migrate(path, StoppedClock()) == newer
        assert content(path) == (newer, guests)
    print(f"{KILLS} upgrades killed, left at {sorted(outcomes)}")
    tell("upgrades killed", KILLS)


def run_child(path):
    return subprocess.Popen([sys.executable, "-c", CHILD, str(path), SECOND, THIRD],
                            stdout=subprocess.PIPE, text=True)  # fmt: skip


@pytest.mark.parametrize("at", range(0, 80, 3))
def test_an_upgrade_that_fails_at_a_statement_leaves_the_old_box(
    old, newer, tmp_path, at, monkeypatch
):
    path = a_copy(old, tmp_path / "box")
    before = content(path)
    statements = iter(range(10**6))

    class Failing(apsw.Connection):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.exec_trace = self.trace

        def trace(self, _cursor, _sql, _bindings):
            if next(statements) == at + 8:
                raise OSError("the power went")
            return True

    monkeypatch.setattr(migrate_module.apsw, "Connection", Failing)
    try:
        migrate(path, StoppedClock())
    except OSError:
        monkeypatch.undo()
        assert content(path) == before
    else:
        monkeypatch.undo()
        assert content(path)[1] == before[1]


def test_an_older_program_leaves_newer_data_untouched(old, newer, tmp_path, monkeypatch):
    path = a_copy(old, tmp_path / "box")
    migrate(path, StoppedClock())
    monkeypatch.undo()
    before = path.read_bytes()

    with pytest.raises(Trouble, match="written by a newer venuebox"):
        migrate(path, StoppedClock())

    assert path.read_bytes() == before
