"""A copy of a database that no cache holds is read back page by page."""

from pathlib import Path

import apsw
import pytest

from appliance.core.errors import OperatorError
from appliance.database.connection import open_connection
from appliance.database.integrity import copy_database, list_faults, write_copy
from appliance.database.migrate import PAGE_BYTES
from appliance.database.wal import wipe

PAGE = PAGE_BYTES
MIB = 1 << 20
ROW = 400  # bytes: some on each page


def fill(path: Path, mib: int) -> None:
    """So much in a table of its own, and of what is deleted again as much."""
    connection = open_connection(path)
    connection.execute("CREATE TABLE bulk (id INTEGER PRIMARY KEY, content BLOB)")
    connection.execute(
        """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
           INSERT INTO bulk SELECT i, CAST('guest ' || i AS BLOB) || randomblob(:row) FROM n""",
        {"rows": 2 * mib * MIB // ROW, "row": ROW},
    )
    connection.execute("DELETE FROM bulk WHERE id % 2")
    connection.close()


def list_unfit_pages(path: Path) -> list[int]:
    """The pages whose checksum does not fit, read past SQLite."""
    content = path.read_bytes()
    connection = open_connection(path, writable=False)
    try:
        return [
            at // PAGE + 1
            for at in range(0, len(content), PAGE)
            if not connection.execute("SELECT verify_checksum(?)", (content[at : at + PAGE],)).get
        ]
    finally:
        connection.close()


def count_bulk(path: Path) -> tuple[int, int]:
    connection = open_connection(path, writable=False)
    try:
        count, total = next(connection.execute("SELECT count(*), total(id) FROM bulk"))
        return int(count), int(total)
    finally:
        connection.close()


@pytest.mark.parametrize(
    "mib", [1, pytest.param(40, marks=pytest.mark.slow)]
)  # the caches hold 8 of who reads, 32 of who writes
def test_each_page_of_a_copy_has_its_checksum(path, tmp_path, mib):
    fill(path, mib)
    copy = tmp_path / "copy.db"

    copy_database(path, copy)

    assert mib * MIB < copy.stat().st_size < 1.5 * mib * MIB + 2 * MIB, "what was deleted is in it"
    assert list_unfit_pages(copy) == []
    assert list_faults(copy) == []
    assert count_bulk(copy) == count_bulk(path)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]


def change_byte(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE + PAGE // 2)
        changed = file.read(1)[0] ^ 1
        file.seek(-1, 1)
        file.write(bytes([changed]))


def test_wiping_leaves_each_page_its_checksum(path):
    fill(path, 4)
    before = count_bulk(path)

    assert wipe(path)

    assert path.stat().st_size < 6 * MIB
    assert list_unfit_pages(path) == []
    assert count_bulk(path) == before


def test_who_writes_meanwhile_is_not_held_up_and_not_in_the_copy(path, tmp_path):
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


@pytest.mark.parametrize("from_the_end", [50, None], ids=["a row's page", "the schema's page"])
def test_of_a_damaged_database_no_copy_is_made(path, tmp_path, from_the_end):
    fill(path, 1)
    page = path.stat().st_size // PAGE - from_the_end if from_the_end else 1
    change_byte(path, page)

    with pytest.raises(OperatorError, match=r"live\.db is damaged"):
        copy_database(path, tmp_path / "copy.db")

    assert list(tmp_path.glob("copy*")) == []


def test_without_room_nothing_is_left(path, tmp_path, monkeypatch):
    fill(path, 1)

    class Full(apsw.Connection):
        def backup(self, *_of):
            raise apsw.FullError("database or disk is full")

    monkeypatch.setattr("appliance.database.integrity.apsw.Connection", Full)
    with pytest.raises(OSError, match=r"not enough space for a copy of live\.db"):
        copy_database(path, tmp_path / "copy.db")

    assert list(tmp_path.glob("copy*")) == []
