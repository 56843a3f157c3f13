"""The watchdog ends a stuck process, and accepts writes again when a full disk has space."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import pytest

from appliance.jobs import watchdog as life
from appliance.jobs.watchdog import DiskReserve
from tests.waiting import until

STUCK = """
import asyncio, os, time
from appliance.jobs.watchdog import keep_alive

def stand_still():
    time.sleep(60)

async def main():
    beating = asyncio.create_task(keep_alive(os.environ))
    await asyncio.sleep(1)
    stand_still()

asyncio.run(main())
"""


@pytest.fixture
def systemd(tmp_path):
    """Systemd's end of the notification socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60)
        yield listening, {"NOTIFY_SOCKET": str(tmp_path / "notify")}


@pytest.mark.slow
@pytest.mark.process
def test_a_stuck_event_loop_stops_notifying_systemd_and_is_killed_with_a_traceback(systemd):
    listening, environ = systemd
    environ = {**os.environ, **environ, "WATCHDOG_USEC": "400000"}
    stuck = subprocess.Popen([sys.executable, "-c", STUCK], env=environ, text=True,
                             stderr=subprocess.PIPE)  # fmt: skip
    try:
        assert listening.recv(100) == b"WATCHDOG=1"
        listening.settimeout(3)
        with suppress(TimeoutError):
            while listening.recv(100):
                pass

        stuck.send_signal(signal.SIGABRT)  # as systemd does
        _, said = stuck.communicate(timeout=30)
    finally:
        stuck.kill()
        stuck.wait()

    assert stuck.returncode == -signal.SIGABRT
    assert "stand_still" in said


def test_a_reserve_created_on_a_full_disk_grows_when_space_is_free_again(tmp_path):
    reserve, size = DiskReserve(tmp_path, 2 << 20), 1 << 20
    (tmp_path / "ballast").write_bytes(bytes(size))

    assert reserve.make()
    assert (tmp_path / "ballast").stat().st_size == 2 * size


class ReserveOnAVolume(DiskReserve):
    """A deleted reserve on a volume that fails as the test sets for each check."""

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
async def test_all_writes_are_accepted_again_when_space_is_free(box, monkeypatch, tmp_path, looks):
    monkeypatch.setattr(life, "_LOOK_SECONDS", 0.0)
    reserve = ReserveOnAVolume(tmp_path / "volume", *looks)

    reserve.start([box.live.database, box.test.database])
    assert box.live.database.is_full
    await until(lambda: not box.live.database.is_full and not box.test.database.is_full)

    assert (reserve.looks, reserve.made) == ([], 1)
    await reserve.close()
