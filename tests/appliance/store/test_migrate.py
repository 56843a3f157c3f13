"""Migrations: made whole or not at all, a copy kept, strangers and newer files refused."""

from pathlib import Path

import apsw
import pytest

from appliance.clock import StoppedClock
from appliance.errors import Trouble
from appliance.store import migrate as migrate_module
from appliance.store.migrate import list_migrations, migrate


def version_of(path: Path) -> int:
    connection = apsw.Connection(str(path))
    try:
        return int(connection.pragma("user_version"))
    finally:
        connection.close()


def test_migrations_are_numbered_without_gaps():
    numbers = [number for number, _ in list_migrations()]

    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.proves("I8")
def test_a_missing_database_is_never_replaced_by_an_empty_one(tmp_path: Path, clock: StoppedClock):
    with pytest.raises(Trouble, match=r"live\.db is missing"):
        migrate(tmp_path / "live.db", clock)

    assert not (tmp_path / "live.db").exists()


def test_an_upgrade_keeps_a_copy_of_what_was_there(
    tmp_path: Path, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "live.db"
    newest = migrate(path, clock, create=True)
    following = [*list_migrations(), (newest + 1, "CREATE TABLE extra (x) ;")]
    monkeypatch.setattr(migrate_module, "list_migrations", lambda: following)

    assert migrate(path, clock) == newest + 1

    (copy,) = (tmp_path / "backups").iterdir()
    assert version_of(copy) == newest
    assert version_of(path) == newest + 1


def test_a_migration_that_fails_half_way_leaves_the_old_schema(
    tmp_path: Path, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "live.db"
    newest = migrate(path, clock, create=True)
    broken = [*list_migrations(), (newest + 1, "CREATE TABLE extra (x); CREATE TABLE extra (y);")]
    monkeypatch.setattr(migrate_module, "list_migrations", lambda: broken)

    with pytest.raises(apsw.SQLError):
        migrate(path, clock)

    connection = apsw.Connection(str(path))
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()
    assert "extra" not in tables
    assert version_of(path) == newest


def test_a_newer_file_is_refused_untouched(tmp_path: Path, clock: StoppedClock):
    path = tmp_path / "live.db"
    newest = migrate(path, clock, create=True)
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", newest + 1)
    connection.close()
    before = path.read_bytes()

    with pytest.raises(Trouble, match="written by a newer venuebox"):
        migrate(path, clock)

    assert path.read_bytes() == before


def test_another_programs_database_is_refused(tmp_path: Path, clock: StoppedClock):
    path = tmp_path / "live.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE songs (title)")
    connection.close()

    with pytest.raises(Trouble, match="not a venuebox database"):
        migrate(path, clock)


def test_a_damaged_file_is_refused_with_a_remedy(tmp_path: Path, clock: StoppedClock):
    path = tmp_path / "live.db"
    path.write_bytes(b"no database at all" * 100)

    with pytest.raises(Trouble, match="restore the last good backup"):
        migrate(path, clock)
