"""A start writes the log again before it builds on it, on real files: the sync may fail."""

import os
import shutil

import pytest

from appliance.clock import StoppedClock, newest_zone_database
from appliance.errors import Trouble
from appliance.store.connection import open_connection
from appliance.store.session import session
from appliance.store.start_check import check_before_serving
from appliance.tokens import Tokens
from tests.conftest import furnished_template


def begin_session(path):
    clock = StoppedClock("2026-11-21T19:00:00Z")
    with session(path, clock, Tokens(), newest_zone_database()) as tx:
        tx.new_id()


BEGINNINGS = pytest.mark.parametrize("begin", [check_before_serving, begin_session])


@pytest.fixture
def left(tmp_path):
    """A database whose process was killed, with a log that no checkpoint has copied back."""
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


@BEGINNINGS
def test_nothing_is_built_on_a_log_that_the_disk_does_not_take(left, monkeypatch, begin):
    before = left.read_bytes(), left.with_name("live.db-wal").read_bytes()

    def fail(_handle):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(Trouble):
        begin(left)

    assert (left.read_bytes(), left.with_name("live.db-wal").read_bytes()) == before


@BEGINNINGS
def test_a_log_that_another_process_holds_is_no_fault_of_the_disk(left, monkeypatch, begin):
    monkeypatch.setattr("appliance.store.waiting.BUSY_SECONDS", 0.02)
    other = open_connection(left)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(Trouble, match="in use"):
            begin(left)
    finally:
        other.close()
