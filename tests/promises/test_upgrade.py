"""Schema upgrades: backed up first, and without data loss wherever they are interrupted.

200 kills in `make soak`, else 8; UPGRADE_KILLS overrides this.
"""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from appliance.backup.archive import open_backup, show_header
from appliance.backup.catalogue import list_backups
from appliance.backup.create import back_up_before_upgrade
from appliance.backup.restore import prove, restore_blank, restore_latest
from appliance.clock import newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.database import migrate as migrate_module
from appliance.database.connection import open_connection
from appliance.database.integrity import check_before_serving
from appliance.database.migrate import list_migrations, migrate
from tests.conftest import with_settings
from tests.soak.scale import FULL, tell
from tests.unit.backup.making import KEY, a_box_with_guests, a_maker

KILLS = int(os.environ.get("UPGRADE_KILLS", "200" if FULL else "8"))
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
from appliance.backup.create import Maker, back_up_before_upgrade
from appliance.clock import SystemClock, newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.settings import Settings
from appliance.database import migrate as m
from appliance.core.tokens import Tokens
known = m.list_migrations()
m.list_migrations = lambda: [*known, (len(known) + 1, sys.argv[2]), (len(known) + 2, sys.argv[3])]
directory = DataDirectory(Path(sys.argv[1]))
print("go", flush=True)
with directory.lock():
    directory.sweep()
    print(back_up_before_upgrade(
        Maker(directory, Settings(), SystemClock(), Tokens(), newest_zone_database())
    ))
    for path in directory.databases:
        m.migrate(path)
"""


@pytest.fixture
def newer(monkeypatch):
    """Add two migrations; return the number of the newest schema."""
    known = list_migrations()
    wanted = [*known, (len(known) + 1, SECOND), (len(known) + 2, THIRD)]
    monkeypatch.setattr(migrate_module, "list_migrations", lambda: wanted)
    return len(wanted)


@pytest.fixture
def box(tmp_path):
    return a_box_with_guests(tmp_path, guests=20)


def content(path):
    """Return the schema number and all guests."""
    connection = open_connection(path, writable=False)
    try:
        guests = connection.execute("SELECT id, customer_name, status FROM reservation ORDER BY id")
        return int(connection.pragma("user_version")), guests.fetchall()
    finally:
        connection.close()


def upgrade(box):
    for path in box.directory.databases:
        migrate(path)


def test_a_box_is_sealed_and_proven_before_its_schema_changes(box, newer):
    told = []
    before = content(box.root / "live.db")

    back_up_before_upgrade(a_maker(box, tell=lambda what, *_: told.append(what)))
    upgrade(box)

    [(backup, _)] = list_backups(box.root / "backups")
    assert set(told) == {"copy", "seal", "prove"}
    assert show_header(backup).schema == newer - 2 == before[0]
    with open_backup(backup) as file:
        assert prove(file, KEY, box.root, box.clock, newest_zone_database()).reservations == 20
    assert content(box.root / "live.db") == (newer, before[1])
    assert back_up_before_upgrade(a_maker(box)) == ""  # nothing is left to upgrade


def test_the_way_back_is_the_backup_from_before_the_upgrade(box, newer, monkeypatch):
    """The older program skips backups made by the newer one."""
    before = content(box.root / "live.db")
    back_up_before_upgrade(a_maker(box))
    upgrade(box)
    box.clock.advance(3600)
    later, _ = a_maker(box).make()
    monkeypatch.undo()
    upgraded = (box.root / "live.db").read_bytes()
    with pytest.raises(OperatorError, match="newer"):
        migrate(box.root / "live.db")
    assert (box.root / "live.db").read_bytes() == upgraded

    asked = (KEY, box.directory, [box.root / "backups"], box.clock, newest_zone_database())
    chosen, aside, *_ = restore_latest(*asked, lambda _done, _all: None)

    assert chosen != later
    assert content(box.root / "live.db") == before
    assert content(aside / "live.db")[0] == newer
    with pytest.raises(OperatorError, match="newer"), open_backup(later) as file:
        restore_blank(file, KEY, DataDirectory(box.root / "blank"), *asked[3:], print)


def test_without_its_volume_the_backup_before_an_upgrade_is_beside_the_box(box, newer):
    settings = with_settings(backup={"directory": str(box.root / "usb")})

    back_up_before_upgrade(a_maker(box, settings=settings))

    [(_, header)] = list_backups(box.root / "backups")
    assert header.schema == newer - 2

    box.clock.advance(60)
    told = back_up_before_upgrade(a_maker(box, settings=settings))

    [(path, _)] = list_backups(box.root / "backups")
    assert str(path) in told, "each start of a failing upgrade makes one"


@pytest.mark.parametrize("what", ["full", "a file in the way"])
def test_without_room_for_a_backup_nothing_is_changed(box, newer, monkeypatch, what):
    path = box.root / "live.db"
    before, folder = content(path), box.root / "backups"
    if what == "full":

        def full(*_):
            raise apsw.FullError("database or disk is full")

        monkeypatch.setattr("appliance.backup.create.copy_database", full)
    else:
        folder.rmdir()
        folder.write_bytes(b"")

    with pytest.raises(OperatorError, match="Nothing was changed"):
        back_up_before_upgrade(a_maker(box))

    monkeypatch.undo()
    assert content(path) == before
    assert folder.is_file() or list(folder.iterdir()) == []


@pytest.mark.parametrize("at", range(0, 80, 16))
def test_an_upgrade_that_fails_at_a_statement_leaves_the_old_box(box, newer, at, monkeypatch):
    path = box.root / "live.db"
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
    with pytest.raises(OSError, match="the power went"):
        migrate(path)

    monkeypatch.undo()
    assert content(path) == before


@pytest.mark.slow
@pytest.mark.process
def test_killed_at_any_instant_of_backup_or_upgrade_the_box_keeps_its_data(box, newer, tmp_path):
    copies = tmp_path / "copies"
    copies.mkdir()
    draw, (found, guests) = random.Random(11), content(box.root / "live.db")
    child = run_child(a_copy(box.root, copies))
    child.stdout.readline()
    begun = time.monotonic()
    child.communicate()
    whole, outcomes = time.monotonic() - begun, set()

    for _ in range(KILLS):
        root = a_copy(box.root, copies)
        child = run_child(root)
        child.stdout.readline()
        time.sleep(draw.uniform(0, whole))
        child.kill()
        child.wait()
        child.stdout.close()

        for name in ("live.db", "test.db"):
            check_before_serving(root / name)
        version, kept = content(root / "live.db")
        assert (version in {found, newer}, kept) == (True, guests)
        backups = list_backups(root / "backups")
        for path, _ in backups:
            with open_backup(path) as file:
                prove(file, KEY, tmp_path, box.clock, newest_zone_database())
        assert backups or version == found, "it was changed before it was sealed"
        outcomes.add((version, len(backups)))
        again = run_child(root)
        again.communicate()
        assert again.returncode == 0
        assert content(root / "live.db") == (newer, guests)
        assert content(root / "test.db")[0] == newer
        assert list_backups(root / "backups")
    print(f"{KILLS} upgrades killed, left at {sorted(outcomes)} (schema, backups)")
    tell("upgrades killed", KILLS)


def a_copy(source, folder):
    shutil.rmtree(folder / "box", ignore_errors=True)
    return Path(shutil.copytree(source, folder / "box"))


def run_child(root):
    return subprocess.Popen([sys.executable, "-c", CHILD, str(root), SECOND, THIRD],
                            stdout=subprocess.PIPE, text=True)  # fmt: skip
