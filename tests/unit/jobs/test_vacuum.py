"""The VACUUM of the night: all guests pass through it, and through no other disk (S24)."""

import contextlib
from pathlib import Path

from appliance.database import wal as wiping
from appliance.database.connection import open_connection


def test_the_copy_of_all_guests_never_leaves_the_disk_of_the_box(tmp_path, monkeypatch):
    path, before, seen = a_large_file(tmp_path, 16), unnamed_files(), set()

    def open_watched(path):
        def look():
            seen.update(unnamed_files() - before)
            return False  # go on

        connection = open_connection(path)
        connection.set_progress_handler(look, 2)
        return connection

    monkeypatch.setattr(wiping, "open_connection", open_watched)
    assert wiping.wipe(path)

    assert seen, "its pages went through a file"
    assert {file.parent for file in seen} == {tmp_path}


def unnamed_files():
    """Those that this process has open and that no folder shows."""
    found = set()
    for handle in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            name = handle.readlink()
            if name.name.endswith(" (deleted)"):
                found.add(name)
    return found


def a_large_file(folder, mebibytes):
    path = folder / "live.db"
    path.touch()
    connection = open_connection(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE filler (bytes BLOB)")
    for _ in range(mebibytes):
        with connection:
            connection.execute("INSERT INTO filler SELECT randomblob(1000000)")
    connection.close()
    return path
