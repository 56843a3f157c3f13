"""Before a new version changes a schema the box is backed up, and nothing can come between (F27).

UPGRADE_KILLS=200 in `make soak`; fewer in `make test`.
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

from appliance.backup.proof import open_backup, prove, show_header
from appliance.backup.restoring import restore_blank, restore_latest
from appliance.backup.shelf import list_backups
from appliance.backup.upgrading import back_up_before_upgrade
from appliance.clock import newest_zone_database
from appliance.data_directory import DataDirectory
from appliance.errors import Trouble
from appliance.store import migrate as migrate_module
from appliance.store.connection import open_connection
from appliance.store.migrate import find_upgrade, list_migrations, migrate
from appliance.store.start_check import check_before_serving
from appliance.store.upgrade_copies import forget_copies, list_copies
from tests.appliance.backup.making import KEY, a_box_with_guests, a_maker
from tests.conftest import with_settings

KILLS = int(os.environ.get("UPGRADE_KILLS", "200" if os.environ.get("SOAK") else "8"))
NEXT = "ALTER TABLE reservation ADD COLUMN mood TEXT; UPDATE reservation SET mood = 'merry'"
CHILD = """
import sys
from pathlib import Path
from appliance.backup.making import Maker
from appliance.backup.upgrading import back_up_before_upgrade
from appliance.clock import SystemClock, newest_zone_database
from appliance.data_directory import DataDirectory
from appliance.settings import Settings
from appliance.store import migrate as m
from appliance.tokens import Tokens
known = m.list_migrations()
m.list_migrations = lambda: [*known, (len(known) + 1, sys.argv[2])]
directory = DataDirectory(Path(sys.argv[1]))
print("go", flush=True)
with directory.lock():
    directory.sweep()
    print(back_up_before_upgrade(
        Maker(directory, Settings(), SystemClock(), Tokens(), newest_zone_database())
    ))
    for path in directory.databases:
        m.migrate(path, SystemClock())
"""


@pytest.fixture
def newer(monkeypatch):
    """A program that knows one schema more."""
    known = list_migrations()
    wanted = [*known, (len(known) + 1, NEXT)]
    monkeypatch.setattr(migrate_module, "list_migrations", lambda: wanted)
    return len(wanted)


@pytest.fixture
def box(tmp_path):
    return a_box_with_guests(tmp_path, guests=20)


def content(path):
    connection = open_connection(path, writable=False)
    try:
        guests = connection.execute("SELECT id, customer_name, status FROM reservation ORDER BY id")
        return int(connection.pragma("user_version")), guests.fetchall()
    finally:
        connection.close()


def shelf(box):
    return [path for path, _ in list_backups(box.root / "backups")]


def test_a_box_is_sealed_and_proven_before_its_schema_changes(box, newer):
    told = []
    before = content(box.root / "live.db")

    said = back_up_before_upgrade(a_maker(box, tell=lambda what, *_: told.append(what)))
    for path in box.directory.databases:
        migrate(path, box.clock)

    [backup] = shelf(box)
    assert said == f"schema {newer - 1} becomes {newer}; the box as it was is in {backup}"
    assert set(told) == {"copy", "seal", "prove"}
    assert show_header(backup).schema == newer - 1 == before[0]
    with open_backup(backup) as file:
        assert prove(file, KEY, box.root, box.clock, newest_zone_database()).reservations == 20
    assert content(box.root / "live.db") == (newer, before[1])


def test_the_way_back_is_the_backup_from_before_the_upgrade(box, newer, monkeypatch):
    """The older version, put back, passes over what the newer one made since."""
    before = content(box.root / "live.db")
    back_up_before_upgrade(a_maker(box))
    for path in box.directory.databases:
        migrate(path, box.clock)
    box.clock.advance(3600)
    later, _ = a_maker(box).make()
    monkeypatch.undo()

    asked = (KEY, box.directory, [box.root / "backups"], box.clock, newest_zone_database())
    chosen, aside, _ = restore_latest(*asked, lambda _done, _all: None)

    assert chosen != later
    assert content(box.root / "live.db") == before
    assert content(aside / "live.db")[0] == newer
    with pytest.raises(Trouble, match="which is newer"), open_backup(later) as file:
        restore_blank(file, KEY, DataDirectory(box.root / "blank"), *asked[3:], print)


def test_a_start_that_changes_no_schema_makes_no_backup(box):
    assert back_up_before_upgrade(a_maker(box)) == ""
    assert shelf(box) == []


def test_what_an_upgrade_would_refuse_is_no_upgrade(box, newer):
    live, test = box.directory.databases
    assert find_upgrade((live, test)) == (newer - 1, newer)

    assert find_upgrade((live, box.root / "missing.db")) is None
    connection = apsw.Connection(str(test))
    connection.pragma("user_version", newer + 1)
    connection.close()
    assert find_upgrade((live, test)) is None
    test.write_bytes(b"no database" * 1000)
    assert find_upgrade((live, test)) is None


def test_without_its_volume_the_upgrade_goes_on_with_plain_copies(box, newer):
    settings = with_settings(backup={"directory": str(box.root / "usb")})

    said = back_up_before_upgrade(a_maker(box, settings=settings))
    for path in box.directory.databases:
        migrate(path, box.clock)

    assert said.startswith(f"schema {newer - 1} becomes {newer} without a sealed backup before")
    assert "plug the volume in" in said
    for stem in ("live", "test"):
        [(schema, at, copy)] = list_copies(box.root / "backups", stem)
        assert (schema, at) == (newer - 1, box.clock.now())
        assert content(copy)[0] == newer - 1
        assert oct(copy.stat().st_mode & 0o777) == "0o600"


def test_of_many_upgrades_the_copies_of_the_last_two_stay(box, monkeypatch):
    path, known = box.root / "live.db", list_migrations()
    wanted = list(known)
    monkeypatch.setattr(migrate_module, "list_migrations", lambda: wanted)
    for number in range(5):
        wanted.append((len(wanted) + 1, f"CREATE TABLE later_{number} (x)"))
        box.clock.advance(1)
        migrate(path, box.clock)

    copies = list_copies(box.root / "backups", "live")
    assert [schema for schema, _, _ in copies] == [len(known) + 4, len(known) + 3]


def test_the_copy_before_an_interruption_gives_way_to_that_of_the_next_try(box, newer):
    path = box.root / "live.db"
    old = box.root / "backups"
    (old / f"live-before-upgrade-{newer - 2:04d}-5.db").write_bytes(b"of the upgrade before")
    (old / f"live-before-upgrade-{newer - 1:04d}-7.db").write_bytes(b"of the try before")
    (old / f".live-before-upgrade-{newer - 1:04d}-8.db.part").write_bytes(b"half of it")

    migrate(path, box.clock)

    schemas = [(schema, at) for schema, at, _ in list_copies(old, "live")]
    assert schemas == [(newer - 1, box.clock.now()), (newer - 2, 5)]
    assert not list(old.glob(".*"))


def test_old_plain_copies_are_forgotten(box, newer):
    migrate(box.root / "live.db", box.clock)
    at = box.clock.now()

    forget_copies(box.root / "backups", at)
    assert len(list_copies(box.root / "backups", "live")) == 1
    forget_copies(box.root / "backups", at + 1)
    assert list_copies(box.root / "backups", "live") == []


@pytest.mark.parametrize("what", ["full", "a file in the way"])
def test_without_room_for_a_copy_nothing_is_changed_and_it_is_said(box, newer, monkeypatch, what):
    path = box.root / "live.db"
    before, folder = content(path), box.root / "backups"
    if what == "full":

        class Full(apsw.Connection):
            def execute(self, sql, *more):
                if sql.startswith("VACUUM INTO"):
                    Path(more[0]["copy"]).write_bytes(b"a part of it")
                    raise apsw.FullError("database or disk is full")
                return super().execute(sql, *more)

        monkeypatch.setattr(migrate_module.apsw, "Connection", Full)
    else:
        folder.rmdir()
        folder.write_bytes(b"")

    with pytest.raises(Trouble, match=r"live\.db is not upgraded.* MiB of room .* nothing was cha"):
        migrate(path, box.clock)

    monkeypatch.undo()
    assert content(path) == before
    assert folder.is_file() or list(folder.iterdir()) == []


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
        said = run_to_its_end(root)
        assert content(root / "live.db") == (newer, guests)
        assert content(root / "test.db")[0] == newer
        assert list_backups(root / "backups"), f"not even after: {said}"
    print(f"{KILLS} upgrades killed, left at {sorted(outcomes)} (schema, backups)")


def a_copy(source, folder):
    shutil.rmtree(folder / "box", ignore_errors=True)
    return Path(shutil.copytree(source, folder / "box"))


def run_to_its_end(root):
    child = run_child(root)
    said, _ = child.communicate()
    assert child.returncode == 0
    return said


def run_child(root):
    return subprocess.Popen([sys.executable, "-c", CHILD, str(root), NEXT],
                            stdout=subprocess.PIPE, text=True)  # fmt: skip
