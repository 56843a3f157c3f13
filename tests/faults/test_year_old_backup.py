"""A backup that lay in a drawer for a year makes the box again, on a blank machine (F32).

Everything is done by the box's own clock, which the test lets leap. What a backup holds is
SQLite's file format and JSON, which no processor writes otherwise than another; that it is read
on one with another order of bytes is SQLite's promise, and not tried here.
"""

import asyncio
import shutil
import subprocess
from datetime import date, timedelta

import apsw
import pytest

from appliance.data_directory import DataDirectory
from tests.faults.leaping_time import LeapingTime
from tests.faults.test_recovery_kit import codes, scan
from tests.faults.test_restore import recovery_key
from tests.journeys.box_process import PROGRAM, clean_environ, found_box
from tests.journeys.partner_side import calling

A_YEAR = 365


def venuebox_at(time, *argv, data):
    """The command by that clock; what it printed."""
    done = subprocess.run(
        [*time.wrapper, PROGRAM, *argv, "--data", str(data)],
        capture_output=True, text=True, check=False, env=clean_environ(time.settings),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


async def book(partner, table, evening):
    return await partner.must(201, "POST", "/v1/reservations", {
        "tableId": table["id"], "date": str(evening), "guests": 2, "notifyCustomer": False,
        "customer": {"name": "Salma", "phone": "+212600000001"}, "idempotencyKey": str(evening),
    })  # fmt: skip


def count_rows(data):
    """How many rows each table of each database has."""
    counts = {}
    for path in DataDirectory(data).databases:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        names = [name for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )]  # fmt: skip
        for name in names:
            [(count,)] = connection.execute(f'SELECT count(*) FROM "{name}"')  # noqa: S608
            counts[path.name, name] = count
        connection.close()
    return counts


@pytest.mark.proves("G6")
async def test_a_year_later_every_row_is_there_and_the_codes_of_then_are_good(tmp_path):
    founded, time = found_box(tmp_path), LeapingTime(tmp_path)
    data, volume = founded.data, tmp_path / "drawer"
    volume.mkdir()
    with time.box(founded, tmp_path) as box:
        async with calling(box, founded, "live") as (partner, door):
            tonight = date.fromisoformat(
                (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
            )
            table = (await partner.must(200, "GET", "/v1/venue"))["tables"][0]
            past = await book(partner, table, tonight)
            coming = await book(partner, table, tonight + timedelta(days=A_YEAR))
        assert box.stop() < 10
    sent, counts = codes(data, "live"), count_rows(data)
    await asyncio.to_thread(venuebox_at, time, "backup", "--to", str(volume), data=data)
    key = recovery_key(data)
    shutil.rmtree(data)

    time.leap(A_YEAR * 86_400)
    [backup] = volume.glob("*.venuebox-backup")
    await asyncio.to_thread(venuebox_at, time, "restore", str(backup), "--key", key, data=data)
    restored = count_rows(data)
    with box:
        async with calling(box, founded, "live") as (_partner, door):
            admitted = await scan(door, sent[coming["serviceReservationId"]])
            late = await scan(door, sent[past["serviceReservationId"]])
        assert box.stop() < 10

    noted = ("live.db", "security_log")  # that it was restored, and from when
    assert {name: count for name, count in restored.items() if counts[name] != count} == {
        noted: counts[noted] + 1
    }
    assert (admitted, late) == ("checked_in", "too_late")
