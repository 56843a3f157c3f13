"""An exhausted disk quota (EDQUOT): the box keeps running and recovers."""

import ctypes
import errno
import os
from contextlib import contextmanager

import apsw
import pytest

from appliance.clock import newest_zone_database
from appliance.clock_gate import write_heartbeat
from appliance.core.errors import OperatorError, Unavailable
from appliance.core.tokens import Tokens
from appliance.database.database import Database
from appliance.database.integrity import copy_database, session
from appliance.database.migrate import migrate
from appliance.jobs.watchdog import DiskReserve

MIB = 1 << 20
PWRITE = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64,
    use_errno=True,
)  # fmt: skip


@PWRITE
def refuse(_file, _data, _size, _offset):
    ctypes.set_errno(errno.EDQUOT)
    return -1


@contextmanager
def used_up():
    """In this block, all writes of SQLite in this process fail with EDQUOT."""
    files = apsw.VFS("quota", "unix")
    address = ctypes.cast(refuse, ctypes.c_void_p).value
    for call in ("pwrite64", "pwrite"):
        assert files.xSetSystemCall(call, address)
    try:
        yield
    finally:
        for call in ("pwrite64", "pwrite"):
            files.xSetSystemCall(call, 0)
        files.unregister()


@pytest.fixture
def path(tmp_path, clock):
    migrate(tmp_path / "live.db", create=True)
    return tmp_path / "live.db"


@pytest.fixture
def broken():
    return []


@pytest.fixture
async def database(path, clock, broken):
    opened = Database(path, clock, Tokens(), newest_zone_database(), broken.append)
    yield opened
    await opened.close()


async def test_commits_are_refused_the_reserve_is_asked_for_and_the_box_goes_on(database, broken):
    asked = []
    database.go_first(frozenset({write_heartbeat}), lambda: asked.append(1) is None)

    with used_up(), pytest.raises(Unavailable):
        await database.write(write_heartbeat)
    assert asked == [1]
    assert database.is_full
    database.is_full = False

    await database.write(write_heartbeat)
    assert broken == []


async def test_a_wipe_waits_for_room_and_ends_no_service(database, broken):
    await database.write(write_heartbeat)

    with used_up():
        assert await database.wipe() is False

    assert await database.wipe()
    await database.write(write_heartbeat)
    assert broken == []


async def test_backups_upgrades_and_commands_ask_for_room(database, path, tmp_path, clock):
    await database.write(write_heartbeat)
    clock.advance(1)

    with used_up():
        with pytest.raises(OSError, match="not enough space"):
            copy_database(path, tmp_path / "copy.db")
        with pytest.raises(OperatorError, match="no free space"):
            migrate(tmp_path / "new.db", create=True)
        with (
            pytest.raises(OperatorError, match="is full"),
            session(path, clock, Tokens(), newest_zone_database()) as tx,
        ):
            write_heartbeat(tx)


@pytest.mark.parametrize(("number", "has_room"), [(errno.EDQUOT, False), (None, True)])
def test_the_reserve_counts_as_given_back_when_the_quota_allows_it_again(
    tmp_path, monkeypatch, number, has_room
):
    ballast = DiskReserve(tmp_path, MIB)
    assert ballast.make()
    assert ballast.release()

    def take(handle, offset, size):
        if number is not None:
            raise OSError(number, os.strerror(number))
        os.ftruncate(handle, offset + size)

    monkeypatch.setattr(os, "posix_fallocate", take)

    assert ballast.has_room_for_all() is has_room
    assert list(tmp_path.iterdir()) == []
