"""The watchdog ends a process whose loop stands still; a full disk is watched until it has room."""

import os
import socket
import subprocess
import sys
import time

import pytest

from appliance.jobs import watchdog as life
from appliance.jobs.watchdog import DiskReserve, sd_notify, watchdog_seconds
from tests.unit.email.mail_servers import until

LOOP = """
import asyncio, sys, time
from appliance.jobs import watchdog

watchdog.PATIENCE, watchdog._REARM_SECONDS = 1.0, 0.2

def stand_still(seconds):
    time.sleep(seconds)

async def main(dump, seconds):
    watching = asyncio.create_task(watchdog.end_if_stuck(dump))
    await asyncio.sleep(2)
    stand_still(seconds)
    watching.cancel()

with open(sys.argv[1], "a") as dump:
    asyncio.run(main(dump, float(sys.argv[2])))
"""


@pytest.fixture
def systemd(tmp_path):
    """Its end of the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60)
        yield listening, {"NOTIFY_SOCKET": str(tmp_path / "notify")}


def run_loop(dump, seconds_stuck):
    return subprocess.run([sys.executable, "-c", LOOP, str(dump), str(seconds_stuck)], timeout=50,
                          check=False)  # fmt: skip


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.proves("G10")
def test_a_loop_that_stands_still_ends_the_process_and_leaves_where_it_stood(tmp_path):
    begun = time.monotonic()

    done = run_loop(tmp_path / "stuck.txt", 60)

    assert done.returncode == 1
    assert "stand_still" in (tmp_path / "stuck.txt").read_text()
    assert time.monotonic() - begun < 45


@pytest.mark.slow
@pytest.mark.process
def test_a_loop_that_turns_is_left_alone(tmp_path):
    done = run_loop(tmp_path / "stuck.txt", 0.1)

    assert done.returncode == 0
    assert (tmp_path / "stuck.txt").read_text() == ""


def test_whoever_was_not_started_by_systemd_tells_nobody(tmp_path, systemd):
    listening, environ = systemd

    sd_notify({}, "READY=1")
    sd_notify({"NOTIFY_SOCKET": str(tmp_path / "nobody")}, "READY=1")
    sd_notify(environ, "STOPPING=1")

    assert listening.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize(("of", "seconds"), [(None, 15), ("me", 15), ("other", None)])
def test_the_watchdog_of_another_process_is_not_ours(of, seconds):
    pids = {"me": os.getpid(), "other": 1}
    environ = {"WATCHDOG_PID": str(pids[of])} if of else {}

    assert watchdog_seconds(environ | {"WATCHDOG_USEC": "30000000"}) == seconds
    assert watchdog_seconds(environ) is None


def test_a_reserve_made_on_a_full_disk_grows_when_there_is_space_again(tmp_path):
    reserve, size = DiskReserve(tmp_path, 2 << 20), 1 << 20
    (tmp_path / "ballast").write_bytes(bytes(size))

    assert reserve.make()
    assert (tmp_path / "ballast").stat().st_size == 2 * size


class ReserveOnAVolume(DiskReserve):
    """A released reserve on a volume that fails as the test says, look by look."""

    def __init__(self, folder, *looks):
        super().__init__(folder)
        self._released = 1
        self.looks = list(looks)
        self.made = 0

    def has_room_for_all(self):
        found = self.looks.pop(0)
        if isinstance(found, OSError):
            raise found
        return found

    def make(self):
        self.made += 1
        return True


@pytest.mark.parametrize(
    "looks",
    [
        (False, True),
        (OSError(5, "input/output error"), True),
        (False, OSError(30, "read-only file system"), OSError(30, "read-only"), True),
    ],
)
async def test_everything_is_taken_again_once_there_is_room(box, monkeypatch, tmp_path, looks):
    monkeypatch.setattr(life, "_LOOK_SECONDS", 0.0)
    reserve = ReserveOnAVolume(tmp_path / "volume", *looks)

    reserve.start([box.live.database, box.test.database])
    assert box.live.database.is_full
    await until(lambda: not box.live.database.is_full and not box.test.database.is_full)

    assert (reserve.looks, reserve.made) == ([], 1)
    await reserve.close()
