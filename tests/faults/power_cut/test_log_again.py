"""The log is written again before anybody builds on it: on real files, with a sync that fails."""

import os
import shutil
from pathlib import Path

import pytest

from appliance.clock import StoppedClock, newest_zone_database
from appliance.errors import Trouble
from appliance.store.connection import open_connection
from appliance.store.session import session
from appliance.store.start_check import check_before_serving
from appliance.tokens import Tokens
from tests.conftest import furnished_template


@pytest.fixture
def left(tmp_path):
    """A database whose process was killed: with a log that nobody has folded."""
    path = tmp_path / "live.db"
    shutil.copy(furnished_template() / "live.db", path)
    connection = open_connection(path)
    connection.execute("UPDATE venue SET name = 'Riad Atlas II'")
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in ("live.db", "live.db-wal"):
        shutil.copy(tmp_path / name, kept / name)
    connection.close()
    return kept / "live.db"


def open_session(path):
    return session(path, StoppedClock("2026-11-21T19:00:00Z"), Tokens(), newest_zone_database())


class Watched:
    """What is written and synced, by the name of the file; and whether a sync succeeds."""

    def __init__(self):
        self.fails = False
        self.synced = []
        self.written = {}

    def pwrite(self, handle, data, at, do=os.pwrite):
        self.written.setdefault(name_of(handle), []).append(bytes(data))
        return do(handle, data, at)

    def fsync(self, handle, do=os.fsync):
        if self.fails:
            raise OSError(5, "Input/output error")
        self.synced.append(name_of(handle))
        do(handle)


def name_of(handle):
    return str(Path(f"/proc/self/fd/{handle}").readlink())


@pytest.fixture
def disk(monkeypatch):
    watched = Watched()
    monkeypatch.setattr(os, "pwrite", watched.pwrite)
    monkeypatch.setattr(os, "fsync", watched.fsync)
    return watched


def test_a_start_writes_every_byte_of_the_log_again_and_syncs_it(left, disk):
    log = left.with_name("live.db-wal")
    before = log.read_bytes()

    check_before_serving(left)

    assert b"".join(disk.written[str(log)]) == before
    assert disk.synced == [str(log)]
    assert log.read_bytes() == before


def test_a_log_that_the_disk_does_not_take_is_not_served_and_stays_as_it_is(left, disk):
    before = left.read_bytes(), left.with_name("live.db-wal").read_bytes()
    disk.fails = True

    with pytest.raises(Trouble, match=r"the log of live\.db cannot be written"):
        check_before_serving(left)

    assert (left.read_bytes(), left.with_name("live.db-wal").read_bytes()) == before


def test_a_command_does_not_build_on_such_a_log_either(left, disk):
    before = left.with_name("live.db-wal").read_bytes()
    disk.fails = True

    with pytest.raises(Trouble, match="check the disk"), open_session(left) as tx:
        tx.new_id()

    assert left.with_name("live.db-wal").read_bytes() == before


@pytest.mark.parametrize("who", ["a start", "a command"])
def test_a_log_that_somebody_else_writes_all_the_time_is_no_fault_of_the_disk(
    left, monkeypatch, who
):
    monkeypatch.setattr("appliance.store.waiting.BUSY_SECONDS", 0.02)
    other = open_connection(left)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(Trouble, match=r"live\.db was in use all the time: nothing was changed"):
            BEGINNINGS[who](left)
    finally:
        other.close()


def begin_session(path):
    with open_session(path):
        pass


BEGINNINGS = {"a start": check_before_serving, "a command": begin_session}
