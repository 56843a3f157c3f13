"""The drill: the box dies, the standby takes over, the door scans, the old box does not serve."""

import asyncio
import json
import subprocess
import time

import aiohttp
import pytest

from appliance.backup.recovery_key import find_recovery_key
from appliance.backup.targets import ensure_sftp_key
from appliance.core.data_directory import DataDirectory
from tests.journeys.backup_servers import an_sftp_server
from tests.journeys.box_process import PROGRAM, BoxProcess, clean_environ, found_box, venuebox
from tests.journeys.partner_side import calling
from tests.journeys.standby_process import SSH_KEY, StandbyProcess, admit
from tests.ports import held_port
from tests.promises.leaping_time import LeapingTime

PATIENCE = 60.0
DRILL_SECONDS = 180.0


@pytest.fixture
def sftp(tmp_path):
    with held_port() as port:
        server = an_sftp_server(tmp_path / "sshd", port)
        with server.running():
            yield server


@pytest.fixture
def founded(sftp, tmp_path):
    """A box that has copied its first backup to the server, with a setting for its target."""
    made = found_box(tmp_path)
    admit(sftp, ensure_sftp_key(DataDirectory(made.data)))
    (made.data / "settings.toml").write_text(f'[backup]\ntarget = "{sftp.url}"\n')
    venuebox("backup", data=made.data)
    venuebox("backup", "target", data=made.data)
    return made


@pytest.fixture
def standby(founded, sftp, tmp_path):
    """A standby of that box, which runs."""
    data = tmp_path / "standby"
    with held_port() as port:
        process = StandbyProcess(data, log=tmp_path / "standby.log")
        process.port = port
        key = find_recovery_key(DataDirectory(founded.data)).text
        address = ("--host", "127.0.0.1", "--port", str(port))
        process.spawn("--from", sftp.url, "--key", key, "--data", str(data), *address)
        try:
            admit(sftp, process.wait_until_told(SSH_KEY))
            yield process
        finally:
            process.kill()


async def health(process):
    """Return (status, body) of the standby's `/health`, or (0, {}) without an answer."""
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{process.address}/health") as answer,
        ):
            return answer.status, await answer.json()
    except aiohttp.ClientError:
        return 0, {}


async def is_ready(process):
    async with asyncio.timeout(PATIENCE):
        while (await health(process))[0] != 200:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)


async def a_booking(box, founded, number):
    """Book a table for tonight; return (reservation id, code of the pass)."""
    async with calling(box, founded, "live") as (partner, door):
        evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
        table = (await partner.must(200, "GET", "/v1/venue"))["tables"][number]
        body = {
            "tableId": table["id"], "date": evening, "guests": 2, "notifyCustomer": False,
            "customer": {"name": "Salma", "phone": "0600000001"}, "idempotencyKey": str(number),
        }  # fmt: skip
        booked = await partner.must(201, "POST", "/v1/reservations", body)
        id_ = booked["serviceReservationId"]
        return id_, (await partner.must(200, "GET", f"/v1/reservations/{id_}"))["accessCode"]


async def scanned(box, founded, code):
    async with calling(box, founded, "live") as (_, door):
        scan = {"scanId": "0199f7a0-0000-7000-8000-000000000001", "code": code}
        return await door.must(200, "POST", "/terminal/v1/scans", scan)


def refused(data, folder):
    """Whether the box in `data` ends at once, before it serves."""
    box = BoxProcess(data, log=folder / "refused.log")
    box.spawn("--data", str(data), "--host", "127.0.0.1", "--port", "0")
    return box.wait(PATIENCE) == 1 and box.lines == []


def take_over(data, *options, expect=0):
    """Run `venuebox standby take-over`; return what it printed."""
    done = subprocess.run(
        [PROGRAM, "standby", "take-over", *options, "--data", str(data), "--host", "127.0.0.1"],
        capture_output=True, text=True, check=False, env=clean_environ(), timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == expect, done.stderr
    return done.stdout


async def reported(time_, box, server):
    """Let a minute pass, and wait until the box has written a marker that is another one."""
    marker = next(server.copies.glob("*.venuebox-serving"))
    before = marker.read_bytes()
    time_.leap(61)
    async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE):
        while marker.read_bytes() == before:
            await asyncio.sleep(0.1)
            async with session.get(f"{box.address}/health"):
                pass  # wakes the event loop


async def test_the_drill(founded, sftp, standby, tmp_path):
    leaping = LeapingTime(tmp_path)
    with leaping.box(founded, tmp_path) as box:
        known, code = await a_booking(box, founded, 0)
        venuebox("backup", data=founded.data)
        venuebox("backup", "target", data=founded.data)
        lost, _ = await a_booking(box, founded, 1)
        await reported(leaping, box, sftp)
        await is_ready(standby)
        take_over(standby.data, "--force", expect=1)
        assert not DataDirectory(standby.data).holds_a_box(), "the other box answers"
        box.kill()
    dead = time.monotonic()

    take_over(standby.data, expect=1)
    assert not DataDirectory(standby.data).holds_a_box(), "the other box reported just now"
    before = time.monotonic()
    told = take_over(standby.data, "--force")
    taken = time.monotonic()
    await asyncio.to_thread(standby.wait_until_ready)
    ready = time.monotonic()
    verdict = await scanned(standby, founded, code)
    done = time.monotonic()

    print(
        f"\ndead → refused without --force {before - dead:.1f} s, take-over {taken - before:.1f} s,"
        f" ready {ready - taken:.1f} s, door scans {done - ready:.1f} s; all {done - dead:.1f} s"
    )
    assert verdict["result"] == "checked_in"
    assert done - dead < DRILL_SECONDS
    events = json.loads((standby.data / "lost-events.json").read_text())
    assert {event["reservationId"] for event in events["events"]} == {lost}
    assert events["unknown"] == 0
    assert all(event["id"] in told for event in events["events"])
    async with calling(standby, founded, "live") as (partner, _):
        await partner.must(200, "GET", f"/v1/reservations/{known}")
        await partner.must(404, "GET", f"/v1/reservations/{lost}")

    assert refused(founded.data, tmp_path)
    take_over(founded.data, "--force", expect=1)
    assert refused(founded.data, tmp_path), "the new box answers, so the old one stays off"
    assert (await health(standby))[0] == 200, "the new box goes on"
    standby.kill()
    take_over(founded.data, "--force")
    with BoxProcess(founded.data, log=tmp_path / "old.log"):
        pass
    assert refused(standby.data, tmp_path), "there is still only one"


def test_a_box_without_a_target_finds_the_one_that_took_its_place_on_the_network(tmp_path):
    founded, new = found_box(tmp_path), tmp_path / "new"
    venuebox("backup", data=founded.data)
    [backup] = (founded.data / "backups").iterdir()
    key = find_recovery_key(DataDirectory(founded.data)).text
    venuebox("restore", str(backup), "--key", key, data=new)
    everywhere = {"VENUEBOX_SERVER_TLS_PORT": "0"}
    with BoxProcess(new, log=tmp_path / "new.log", settings=everywhere) as box:
        box.stop()
        box.spawn("--data", str(new), "--host", "0.0.0.0", "--port", str(box.port))  # noqa: S104
        box.wait_until_ready()

        old = BoxProcess(founded.data, log=tmp_path / "old.log", settings=everywhere)
        old.spawn("--data", str(founded.data), "--host", "0.0.0.0", "--port", "0")  # noqa: S104
        try:
            assert old.wait(PATIENCE) == 1
        finally:
            old.kill()
        assert box.process.poll() is None, "the new box goes on"
