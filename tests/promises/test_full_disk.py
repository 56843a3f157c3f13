"""Full, read-only and missing volumes, each in the mount namespace of one process."""

import asyncio
import json
import os
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from appliance.backup.catalogue import read_record
from tests.journeys.box_process import (
    PROGRAM,
    STOP_SECONDS,
    BoxProcess,
    clean_environ,
    found_box,
    venuebox,
)
from tests.journeys.partner_side import calling
from tests.promises.conftest import own_mounts

TABLES = 20
EMPTY = 'mount -t tmpfs -o size=64m tmpfs "$0" && exec "$@"'
COPIED = 'mount -t tmpfs -o size={size}m tmpfs "$0" && cp -a "$1/." "$0" && shift && '
FILLED = COPIED.format(size=16) + '{ cat /dev/zero > "$0/filler"; } 2>/dev/null; exec "$@"'
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.network]


def mounted(script, folder, *content):
    """Return a command prefix that runs the command with `folder` mounted by `script`."""
    return (*own_mounts(), "sh", "-c", script, str(folder), *map(str, content))


SERVE = ("serve", "--host", "127.0.0.1", "--port", "0")  # on a free port


def run(data, *argv, wrapper=()):
    return subprocess.run(
        [*wrapper, PROGRAM, *argv, "--data", str(data)],
        capture_output=True, text=True, check=False, env=clean_environ({"LC_ALL": "C.UTF-8"}),
    )  # fmt: skip


class Filler:
    """Fill up the volume of a running process."""

    def __init__(self, pid, folder):
        self._file = Path(f"/proc/{pid}/root{folder}/filler")

    def fill(self):
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            for size in (1 << 20, 4096, 1):
                fill_by(handle, size)
        finally:
            os.close(handle)

    def free(self):
        self._file.unlink()


def fill_by(handle, size):
    try:
        while os.write(handle, bytes(size)):
            pass
    except OSError:
        return


@pytest.fixture
def small(tmp_path):
    (tmp_path / "small").mkdir()
    return tmp_path / "small"


async def bodies_of(partner, door):
    """Return `body(number)`, which creates a booking of this table for tonight."""
    tables = (await partner.must(200, "GET", "/v1/venue"))["tables"]
    evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
    return lambda number: {
        "tableId": tables[number]["id"], "date": evening, "guests": 2,
        "customer": {"name": "Salma", "phone": "+212600000001"}, "idempotencyKey": f"b{number}",
    }  # fmt: skip


async def check_in(door, booked):
    scan = {"scanId": str(uuid.uuid4()), "code": booked["accessCode"]}
    verdict = await door.must(200, "POST", "/terminal/v1/scans", scan)
    assert verdict["result"] == "checked_in"


async def recovers(partner, body):
    deadline = time.monotonic() + 60
    while (await partner("POST", "/v1/reservations", body))[0] == 503:
        assert time.monotonic() < deadline, "it did not recover by itself"
        await asyncio.sleep(0.2)


@pytest.mark.parametrize("megabytes", [64, 6])
async def test_on_a_full_disk_guests_are_checked_in_and_bookings_are_refused(
    tmp_path, small, megabytes
):
    founded = found_box(tmp_path, TABLES)
    script = COPIED.format(size=megabytes) + 'exec "$@"'
    wrapper = mounted(script, small, founded.data)
    with BoxProcess(small, log=tmp_path / "box.log", wrapper=wrapper) as box:
        async with calling(box, founded, "live") as (partner, door):
            body = await bodies_of(partner, door)
            made = [
                await partner.must(201, "POST", "/v1/reservations", body(number))
                for number in range(TABLES - 1)
            ]
            filler = Filler(box.pid, small)
            assert (await partner("GET", "/health"))[0] == 200
            await asyncio.to_thread(filler.fill)

            status, answer = await partner("POST", "/v1/reservations", body(TABLES - 1))
            assert (status, answer["code"]) == (503, "UNAVAILABLE")
            assert (await partner("GET", "/health"))[0] == 503
            for one in made:
                await check_in(door, one)
            assert (await partner("GET", "/v1/venue"))[0] == 200

            await asyncio.to_thread(filler.free)
            await recovers(partner, body(TABLES - 1))
        assert await asyncio.to_thread(box.stop) < STOP_SECONDS


async def test_a_box_started_on_a_full_disk_uses_its_reserve_for_check_ins(tmp_path, small):
    founded = found_box(tmp_path)
    with BoxProcess(founded.data, log=tmp_path / "before.log") as box:
        async with calling(box, founded, "live") as (partner, door):
            body = await bodies_of(partner, door)
            made = await partner.must(201, "POST", "/v1/reservations", body(0))
        await asyncio.to_thread(box.stop)
    (founded.data / "ballast").write_bytes(bytes(4 << 20))

    wrapper = mounted(FILLED, small, founded.data)
    with BoxProcess(small, log=tmp_path / "box.log", wrapper=wrapper) as box:
        async with calling(box, founded, "live") as (partner, door):
            await check_in(door, made)
            status, answer = await partner("POST", "/v1/reservations", body(1))
            assert (status, answer["code"]) == (503, "UNAVAILABLE")

            await asyncio.to_thread(Filler(box.pid, small).free)
            await recovers(partner, body(1))


@pytest.mark.parametrize(
    "argv",
    [
        SERVE,
        ["key", "list"],
        ["key", "create", "--environment", "live", "--name", "P"],
        ["backup", "kit", "--html", "{small}/kit.html"],
        ["backup"],
    ],
    ids=" ".join,
)
def test_on_a_full_disk_each_command_asks_for_space_and_reports_no_damage(tmp_path, small, argv):
    wrapper = mounted(FILLED, small, found_box(tmp_path).data)

    done = run(small, *(word.format(small=small) for word in argv), wrapper=wrapper)

    assert done.returncode == 1
    [sentence] = done.stderr.splitlines()
    assert "room" in sentence or "full" in sentence
    assert "unexpected" not in sentence
    assert "restore" not in sentence


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*.db*") if path.is_file()}


def test_on_a_read_only_volume_the_box_and_its_commands_change_nothing(tmp_path):
    data = found_box(tmp_path).data
    listing = ("key", "list", "--environment", "live")
    create = ("key", "create", "--environment", "live", "--name", "P")

    refused_unchanged(data, listing)
    refused_unchanged(data, create)
    with BoxProcess(data, log=tmp_path / "box.log") as box:  # a killed box leaves a WAL
        pass
    refused_unchanged(data, SERVE)
    with box:
        assert venuebox(*listing, data=data)


def refused_unchanged(data, argv):
    before = files_of(data)
    done = run(data, *argv, wrapper=mounted(READ_ONLY, data))
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert files_of(data) == before


@pytest.fixture
def usb(tmp_path):
    (tmp_path / "usb").mkdir()
    return tmp_path / "usb"


@pytest.fixture
def backed_up(tmp_path, usb):
    """A data directory whose backups go to a volume at `usb`, with one backup on it."""
    data = found_box(tmp_path).data
    set_backup_folder(data, usb)
    assert run(data, "backup", wrapper=mounted(EMPTY, usb)).returncode == 0
    return data


def set_backup_folder(data, folder):
    (data / "settings.toml").write_text(f'[backup]\ndirectory = "{folder}"\n')


def backups_check(data):
    checks = json.loads(run(data, "doctor", "--json").stdout)["checks"]
    return next(check["status"] for check in checks if check["name"] == "backups")


def test_no_backup_is_written_to_the_mount_point_of_an_unplugged_volume(backed_up, usb):
    proven = read_record(backed_up)
    assert proven.volume == str(usb)

    assert run(backed_up, "backup").returncode == 1

    assert list(usb.iterdir()) == []
    assert read_record(backed_up).at == proven.at
    assert backups_check(backed_up) == "fail"
    assert run(backed_up, "backup", wrapper=mounted(EMPTY, usb)).returncode == 0  # an empty volume
