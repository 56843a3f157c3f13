"""Beside a process that writes without a pause: the moment between two commits is found."""

import threading
import time
from types import SimpleNamespace

import apsw
import pytest

from appliance.clock import StoppedClock
from appliance.store import waiting
from appliance.store.connection import open_connection
from appliance.store.migrate import migrate

CHANGE = "INSERT INTO heartbeat (id, at) VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET at = at + 1"


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "live.db"
    migrate(found, StoppedClock(), create=True)
    return found


@pytest.fixture
def sleeps(monkeypatch):
    """How long each sleep of whoever waits was; it takes that long in truth, too."""
    slept = []

    def note(seconds):
        slept.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=time.monotonic, sleep=note))
    return slept


@pytest.mark.proves("I1", "I7")
def test_it_is_looked_for_a_free_moment_five_hundred_times_a_second(path, sleeps):
    holder, waiter = open_connection(path), open_connection(path)
    holder.execute("BEGIN IMMEDIATE")
    soon = threading.Timer(0.3, holder.execute, ["COMMIT"])
    soon.start()

    waiter.execute(CHANGE)

    soon.join()
    assert len(sleeps) > 5
    assert set(sleeps) == {0.002}
    holder.close()
    waiter.close()


def test_who_holds_it_all_the_time_is_waited_for_only_so_long_and_each_time_anew(
    path, monkeypatch, sleeps
):
    monkeypatch.setattr(waiting, "BUSY_SECONDS", 0.05)
    holder, waiter = open_connection(path), open_connection(path)
    holder.execute("BEGIN IMMEDIATE")

    for _ in range(2):
        sleeps.clear()
        with pytest.raises(apsw.BusyError):
            waiter.execute(CHANGE)
        assert sleeps

    holder.execute("ROLLBACK")
    waiter.execute(CHANGE)
    holder.close()
    waiter.close()
