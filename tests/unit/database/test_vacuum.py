"""Copies of a database, and the VACUUM that removes deleted content."""

import contextlib
from pathlib import Path

import apsw
import pytest

from appliance.core.errors import OperatorError
from appliance.database import vacuum
from appliance.database.connection import open_connection
from appliance.database.integrity import list_faults
from appliance.database.migrate import PAGE_BYTES
from appliance.database.vacuum import copy_database, write_copy

MIB = 1 << 20


def fill(path: Path, mib: int, row: int = 400) -> None:
    """Write this much data into a table, and delete the same amount of other data."""
    connection = open_connection(path)
    connection.execute("CREATE TABLE bulk (id INTEGER PRIMARY KEY, content BLOB)")
    connection.execute(
        """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
           INSERT INTO bulk SELECT i, CAST('guest ' || i AS BLOB) || randomblob(:row) FROM n""",
        {"rows": 2 * mib * MIB // row, "row": row},
    )
    connection.execute("DELETE FROM bulk WHERE id % 2")
    connection.close()


def count_bulk(path: Path) -> tuple[int, int]:
    connection = open_connection(path, writable=False)
    try:
        count, total = next(connection.execute("SELECT count(*), total(id) FROM bulk"))
        return int(count), int(total)
    finally:
        connection.close()


def test_a_copy_has_every_row_and_no_deleted_data(path, tmp_path):
    fill(path, 1)
    copy = tmp_path / "copy.db"

    copy_database(path, copy)

    assert MIB < copy.stat().st_size < 1.5 * MIB
    assert list_faults(copy) == []
    assert count_bulk(copy) == count_bulk(path)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.glob("copy*")] == ["copy.db"]


def test_a_copy_does_not_block_writers_and_excludes_later_writes(path, tmp_path):
    fill(path, 4)
    before = count_bulk(path)
    reading, writing = open_connection(path, writable=False), open_connection(path)
    writing.set_busy_timeout(0)
    steps: list[int] = []

    def write() -> bool:
        steps.append(len(steps))
        writing.execute("DELETE FROM bulk WHERE id = (SELECT max(id) FROM bulk)")
        return False

    reading.set_progress_handler(write, 2000)
    try:
        write_copy(reading, tmp_path / "copy.db")
    finally:
        reading.close()
        writing.close()

    assert len(steps) > 1, "nothing was written meanwhile"
    assert count_bulk(tmp_path / "copy.db") == before
    assert count_bulk(path)[0] == before[0] - len(steps)


@pytest.mark.parametrize("from_the_end", [50, None], ids=["a table's page", "the schema's page"])
def test_copying_a_damaged_database_is_refused(path, tmp_path, from_the_end):
    fill(path, 1)
    page = path.stat().st_size // PAGE_BYTES - from_the_end if from_the_end else 1
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(bytes(PAGE_BYTES))

    with pytest.raises(OperatorError, match=r"live\.db is damaged"):
        copy_database(path, tmp_path / "copy.db")

    assert list(tmp_path.glob("copy*")) == []


def test_a_copy_that_fills_the_disk_leaves_no_partial_file(path, tmp_path, monkeypatch):
    fill(path, 1)

    class Full(apsw.Connection):
        def execute(self, statement, *bound, **options):
            if statement.startswith("VACUUM"):
                raise apsw.FullError("database or disk is full")
            return super().execute(statement, *bound, **options)

    monkeypatch.setattr("appliance.database.connection.apsw.Connection", Full)
    with pytest.raises(OSError, match=r"not enough space for a copy of live\.db"):
        copy_database(path, tmp_path / "copy.db")

    assert list(tmp_path.glob("copy*")) == []


def test_a_vacuum_keeps_every_row_and_frees_deleted_space(path):
    fill(path, 4)
    before = count_bulk(path)

    assert vacuum.wipe(path)

    assert path.stat().st_size < 6 * MIB
    assert count_bulk(path) == before


def test_a_vacuum_writes_guest_data_only_to_the_disk_of_the_database(tmp_path, monkeypatch):
    path = tmp_path / "live.db"
    path.touch()  # without our schema, a vacuum has few steps
    fill(path, 5, row=MIB)
    before, seen = unnamed_files(), set()

    def open_watched(path):
        def look():
            seen.update(unnamed_files() - before)
            return False  # continue the vacuum

        connection = open_connection(path)
        connection.set_progress_handler(look, 2)
        return connection

    monkeypatch.setattr(vacuum, "open_connection", open_watched)
    assert vacuum.wipe(path)

    assert seen, "its pages went through a file"
    assert {file.parent for file in seen} == {tmp_path}


def unnamed_files():
    """Return the open files of this process that no longer have a name."""
    found = set()
    for handle in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            name = handle.readlink()
            if name.name.endswith(" (deleted)"):
                found.add(name)
    return found
