"""Wiping costs the evening nothing: when, how much memory, how much disk (S24)."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from appliance.actions.erase_guest import erase_guest
from appliance.clock import parse_instant
from appliance.store import wiping
from appliance.store.connection import open_connection
from appliance.upkeep.erasure_list import read_list
from appliance.upkeep.erasures import Erasures
from tests.appliance.upkeep.canaries import a_guest, crowd, live_through, traces_in
from tests.appliance.upkeep.keeping import Timer

FOUR_O_CLOCK = "2026-11-22T04:00:00Z"
MIB = 1 << 20


class House:
    """Erasures of a box that is too large to be wiped at any hour, and their timer."""

    def __init__(self, box, clock, folder):
        self.box, self.clock, self.folder = box, clock, folder
        self.timer = Timer()
        self.erasures = None

    async def start(self):
        self.timer = Timer()
        self.erasures = Erasures(self.box.live, self.timer)
        await self.erasures.start()
        await self.erasures.settle()

    async def erase(self):
        database = self.box.live.database
        await crowd(database, 30)
        id_ = await a_guest(database)
        await database.write(live_through, id_)
        rows = await database.read(lambda reader: list(reader.rows("SELECT id FROM reservation")))
        for (each,) in rows:
            await database.write(erase_guest, each, actor="staff:1")
        await asyncio.sleep(0)
        await self.erasures.settle()
        return id_

    async def wait_for_the_timer(self):
        self.clock.advance(self.timer.seconds)
        self.timer.callback()
        await self.erasures.settle()

    def is_wiped(self):
        return traces_in(self.folder) == set()


@pytest.fixture
async def house(box, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(wiping, "_SMALL", 0)
    made = House(box, clock, tmp_path)
    await made.start()
    yield made
    await made.erasures.close()


async def test_a_large_file_is_wiped_at_four_in_the_night_and_nobody_waits_before(house):
    id_ = await house.erase()
    assert not house.is_wiped()
    assert id_ in read_list(house.folder, "live"), "a restore meanwhile brings nobody back"

    await house.wait_for_the_timer()  # it looks again at least every six hours
    assert house.clock.now() == parse_instant("2026-11-22T01:00:00Z")
    assert not house.is_wiped()
    await house.wait_for_the_timer()

    assert house.clock.now() == parse_instant(FOUR_O_CLOCK)
    assert house.is_wiped()
    assert not list(house.folder.glob("unwiped*"))


async def test_a_box_that_is_off_at_night_wipes_at_its_start(house):
    await house.erase()
    mark_at(house, "2026-11-21T06:59:00Z")
    await house.erasures.close()

    await house.start()

    assert house.is_wiped()
    assert not list(house.folder.glob("unwiped*"))


def mark_at(house, instant):
    seconds = parse_instant(instant) / 1000
    os.utime(house.folder / "unwiped-live", (seconds, seconds))


async def test_without_room_nothing_is_tried_and_each_time_it_waits_longer(
    house, monkeypatch, caplog
):
    await house.erase()
    before = house.box.live.database.path.read_bytes()
    monkeypatch.setattr(wiping, "_SMALL", MIB)  # so the hour does not matter
    no_room(monkeypatch)

    waits = []
    for _ in range(8):
        await house.wait_for_the_timer()
        waits.append(house.timer.seconds)

    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert house.box.live.database.path.read_bytes() == before
    assert "live.db cannot be wiped: that takes" in caplog.text
    monkeypatch.undo()
    await house.wait_for_the_timer()
    assert house.is_wiped()


def no_room(monkeypatch):
    class Full:
        f_bavail, f_frsize = 0, 4096

    monkeypatch.setattr(wiping.os, "statvfs", lambda _path: Full())


@pytest.mark.proves("S24")
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
