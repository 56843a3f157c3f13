"""Starting a box with files left by a crash or written by another program."""

import subprocess
import sys

import pytest

from appliance.clock import newest_zone_database
from appliance.core.tokens import Tokens
from appliance.database.connection import open_connection
from appliance.database.database import Database
from appliance.database.integrity import check_before_serving, list_faults, session
from appliance.database.migrate import migrate

ANOTHER_PROGRAM = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
for statement in sys.argv[2:]:
    print(*connection.execute(statement).fetchall())
    connection.commit()
connection.close()
"""
ZONES = newest_zone_database()


def run_sqlite(path, *statements):
    """Run statements in another process with Python's own SQLite. Return its output."""
    return subprocess.run(
        [sys.executable, "-c", ANOTHER_PROGRAM, str(path), *statements],
        capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip


def hire(tx, name):
    tx.insert("staff", {"id": tx.new_id(), "name": name, "role": "door", "created_at": tx.now})


def names(reader):
    return [name for (name,) in reader.rows("SELECT name FROM staff ORDER BY name")]


@pytest.mark.process
@pytest.mark.parametrize("left", ["", "VACUUM", "PRAGMA journal_mode = DELETE"])
async def test_other_sqlite_programs_can_write_to_the_files_of_a_stopped_box(path, clock, left):
    database = Database(path, clock, Tokens(), ZONES)
    await database.write(hire, "Salma")
    await database.close()

    run_sqlite(path, "UPDATE staff SET name = 'Salma Idrissi'", *([left] if left else []))

    check_before_serving(path)
    migrate(path)
    assert list_faults(path) == []
    database = Database(path, clock, Tokens(), ZONES)
    try:
        await database.write(hire, "Youssef")
        assert await database.read(names) == ["Salma Idrissi", "Youssef"]
    finally:
        await database.close()
    found = run_sqlite(path, "PRAGMA integrity_check", "SELECT name FROM staff ORDER BY name")
    assert found[:2] == ["('ok',)", "('Salma Idrissi',) ('Youssef',)"]


def test_starting_after_a_crash_keeps_every_commit_and_empties_the_wal(path, clock):
    connection = open_connection(path)
    for number in range(5):
        connection.execute("INSERT INTO heartbeat VALUES (1, ?) ON CONFLICT DO UPDATE SET at = ?",
                           (number, number))  # fmt: skip
    files = {each: each.read_bytes() for each in path.parent.glob("live.db*")}
    connection.close()
    for each, content in files.items():
        each.write_bytes(content)
    log = path.with_name("live.db-wal")
    assert log.stat().st_size

    check_before_serving(path)

    assert not log.exists() or not log.stat().st_size
    with session(path, clock, Tokens(), ZONES) as tx:
        assert tx.value("SELECT at FROM heartbeat") == 4
