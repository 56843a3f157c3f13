"""`venuebox salvage`: databases whose checksums are wrong, but whose rows can be read."""

import subprocess
import sys
from contextlib import closing

import apsw
import pytest

from appliance.backup.recovery_key import recovery_key_file
from appliance.core.errors import OperatorError
from appliance.database.connection import open_connection
from appliance.database.integrity import check_before_serving, count_rows, list_faults
from appliance.database.migrate import PAGE_BYTES
from tests.unit.backup.making import a_box_with_guests, a_maker
from web.main import main

pytestmark = pytest.mark.process

# Another SQLite library, in a process of its own.
FOREIGN = """\
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as connection:
    connection.execute("UPDATE venue SET name = 'Riad Étranger'")
connection.close()
"""


@pytest.fixture
def written_by_others(tmp_path):
    """A box whose live database another SQLite library has changed."""
    made = a_box_with_guests(tmp_path, guests=60)
    path = made.directory.database("live")
    subprocess.run([sys.executable, "-c", FOREIGN, str(path)], check=True)
    with pytest.raises(OperatorError):
        check_before_serving(path)
    return made


def venue_name(path):
    with closing(open_connection(path, writable=False)) as connection:
        return next(connection.execute("SELECT name FROM venue"))[0]


def salvage(made, *options):
    return main(["salvage", "--data", str(made.root), *options], {})


def test_rows_with_wrong_checksums_are_copied_and_the_damaged_file_is_not_touched(
    written_by_others,
):
    path = written_by_others.directory.database("live")
    before = path.read_bytes()

    assert salvage(written_by_others) == 0

    [beside] = written_by_others.root.glob("salvaged-*")
    for copy in (beside / "live.db", beside / "test.db"):
        assert list_faults(copy) == []
        assert copy.stat().st_mode & 0o777 == 0o600
    assert count_rows(beside / "live.db")["reservation"] == 60
    assert venue_name(beside / "live.db") == "Riad Étranger"
    assert path.read_bytes() == before


def test_the_copies_take_the_place_of_the_damaged_files_which_are_kept(written_by_others):
    path = written_by_others.directory.database("live")
    before = path.read_bytes()

    assert salvage(written_by_others, "--replace") == 0

    [damaged] = written_by_others.root.glob("damaged-*")
    assert (damaged / "live.db").read_bytes() == before
    assert (damaged / "test.db").exists()
    assert not list(written_by_others.root.glob("salvaged-*"))
    check_before_serving(path)
    assert count_rows(path)["reservation"] == 60


def test_a_damaged_last_commit_of_the_log_is_left_out(tmp_path):
    made = a_box_with_guests(tmp_path, guests=1)
    path = made.directory.database("live")
    with closing(open_connection(path)) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        for name in ("kept", "lost"):
            connection.execute("UPDATE venue SET name = :name", {"name": name})
    log = path.with_name("live.db-wal")
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")

    assert salvage(made, "--replace") == 0

    assert venue_name(path) == "kept"


def test_pages_that_contradict_each_other_are_not_salvaged(tmp_path, capsys):
    made = a_box_with_guests(tmp_path, guests=60)
    path = made.directory.database("live")
    hurt = bytearray(path.read_bytes())
    hurt[PAGE_BYTES : 2 * PAGE_BYTES] = bytes(PAGE_BYTES)
    path.write_bytes(hurt)

    assert salvage(made, "--replace") == 1

    assert "live.db" in capsys.readouterr().err
    assert path.read_bytes() == hurt
    assert not [*made.root.glob("damaged-*"), *made.root.glob("salvaged-*/*.db")]


def test_a_box_that_is_served_is_not_salvaged(written_by_others):
    with written_by_others.directory.lock():
        assert salvage(written_by_others) == 1

    assert not list(written_by_others.root.glob("salvaged-*"))


def test_a_box_without_any_backup_is_not_asked_for_its_key(tmp_path, capsys):
    made = a_box_with_guests(tmp_path, guests=1)
    recovery_key_file(made.directory).unlink()

    assert main(["restore", "--latest", "--data", str(made.root)], {}) == 1

    assert str(made.root / "backups") in capsys.readouterr().err
    assert not list(made.root.glob("damaged-*"))


def test_a_lost_live_database_is_not_called_intact_when_it_was_restored(tmp_path, capsys):
    made = a_box_with_guests(tmp_path, guests=3)
    a_maker(made).make()
    made.directory.database("live").unlink()

    assert main(["restore", "--latest", "--data", str(made.root)], {}) == 0

    said = capsys.readouterr().out
    assert "3 reservations" in said
    assert "intact" not in said


def test_a_sandbox_that_cannot_be_salvaged_does_not_keep_the_live_rows_from_use(written_by_others):
    live, sandbox = (written_by_others.directory.database(name) for name in ("live", "test"))
    with sandbox.open("r+b") as file:
        file.seek(2 * PAGE_BYTES)
        file.write(bytes(20 * PAGE_BYTES))
    damaged = sandbox.read_bytes()

    assert salvage(written_by_others, "--replace") == 0

    assert list_faults(live) == []
    assert sandbox.read_bytes() == damaged
