"""Backups copied to real servers (OpenSSH's SFTP, S3), and restores from the copies."""

import asyncio
import json
import re
import resource
import socket
import subprocess
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from appliance.backup.catalogue import parse_name
from appliance.backup.copies import read_copy_record
from appliance.backup.copy_process import Get, run_child
from appliance.backup.recovery_key import find_recovery_key, recovery_key_file
from appliance.backup.targets import TargetError, open_target
from appliance.core.data_directory import DataDirectory
from appliance.core.ssh import ensure_key
from appliance.database.integrity import list_faults
from tests.conftest import with_settings
from tests.journeys.backup_servers import KEY_ID, SECRET, an_s3_server, an_sftp_server
from tests.journeys.box_process import PROGRAM, BoxProcess, clean_environ, found_box, venuebox
from tests.journeys.partner_side import calling
from tests.ports import held_port
from tests.promises.leaping_time import LeapingTime
from tests.promises.test_restore import codes


@dataclass
class Elsewhere:
    """A target, the environment variables with which a box uses it, and its server."""

    url: str
    environ: dict[str, str]
    server: Any

    @property
    def settings(self):
        return self.environ | {"VENUEBOX_BACKUP_TARGET": self.url}

    def run(self, *argv, data, expect=0):
        """Run a command of the box with this target. Return its output."""
        done = subprocess.run(
            [PROGRAM, *argv, "--data", str(data)], capture_output=True, text=True, check=False,
            env=clean_environ(self.settings), timeout=120,
        )  # fmt: skip
        assert done.returncode == expect or argv[0] == "doctor", done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def founded(tmp_path):
    return found_box(tmp_path)


@pytest.fixture
def sftp(founded, tmp_path):
    """An SFTP server that knows the box's key."""
    with held_port() as port:
        server = an_sftp_server(tmp_path / "sshd", port)
        server.authorized.write_text(ensure_key(founded.data) + "\n")
        with server.running():
            yield Elsewhere(server.url, {}, server)


@pytest.fixture(scope="module")
def s3_server():
    with an_s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def s3(s3_server, tmp_path):
    """A folder of its own for each test."""
    environ = {"VENUEBOX_BACKUP_TARGET_KEY": KEY_ID, "VENUEBOX_BACKUP_TARGET_SECRET": SECRET}
    url = f"s3://backups/{tmp_path.name}/riad?endpoint={s3_server}"
    return Elsewhere(url, environ, s3_server)


@pytest.fixture(params=["sftp", "s3"])
def elsewhere(request):
    return request.getfixturevalue(request.param)


def opened(target, data):
    """Return the connection of a box to the target."""
    backup = {
        name.removeprefix("VENUEBOX_BACKUP_").lower(): value
        for name, value in target.settings.items()
        if name != "HOME"
    }
    return open_target(with_settings(backup=backup).backup, data, lambda _: None)


async def files_at(target, data):
    """Return the backups at the target and their sizes."""
    async with opened(target, data) as connection:
        return await connection.list()


def backups_of(data):
    return {path.name: path.stat().st_size for path in (data / "backups").iterdir()}


async def test_a_running_box_copies_each_backup_and_a_new_machine_can_restore_the_latest(
    elsewhere, founded, tmp_path
):
    clock, new = LeapingTime(tmp_path), tmp_path / "new"
    with clock.box(founded, tmp_path, elsewhere.settings) as box:
        await copied(clock, box, elsewhere, 61, 1)
        async with calling(box, founded, "live") as (partner, door):
            evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
            table = (await partner.must(200, "GET", "/v1/venue"))["tables"][0]
            booking = {
                "tableId": table["id"], "date": evening, "guests": 2, "notifyCustomer": False,
                "customer": {"name": "Salma", "phone": "0600000001"}, "idempotencyKey": "1",
            }  # fmt: skip
            booked = await partner.must(201, "POST", "/v1/reservations", booking)
        await copied(clock, box, elsewhere, 5 * 60 + 1, 2)
        [code] = codes(founded.data, "live").values()

    if elsewhere.url.startswith("sftp"):  # the technician has a key of their own
        home = tmp_path / "home"
        (home / ".ssh").mkdir(parents=True)
        elsewhere.server.admit_user(home / ".ssh" / "id_ed25519")
        elsewhere.environ["HOME"] = str(home)
    key = find_recovery_key(DataDirectory(founded.data)).text
    began = time.monotonic()
    elsewhere.run("restore", "--from", elsewhere.url, "--key", key, data=new)
    with BoxProcess(new, log=tmp_path / "new.log") as box:
        async with calling(box, founded, "live") as (partner, door):
            scan = {"scanId": str(uuid.uuid4()), "code": code}
            assert "result" in await door.must(200, "POST", "/terminal/v1/scans", scan)
            print(f"from the killed box to the first scan: {time.monotonic() - began:.1f} s")
            path = f"/v1/reservations/{booked['serviceReservationId']}"
            assert (await partner.must(200, "GET", path))["status"] == "confirmed"
    said = (tmp_path / "box.log").read_text() + (tmp_path / "new.log").read_text()
    assert SECRET not in said


async def copied(clock, box, target, seconds, count):
    """Advance the time until a backup is due, and wait until its copy is made and verified.

    Without this wait, the next leap would exceed the deadlines of the current copy or trial.
    """
    clock.leap(seconds)
    async with aiohttp.ClientSession() as session, asyncio.timeout(60):
        while (
            len(found := await files_at(target, box.data)) < count
            or read_copy_record(box.data).proven_at is None
        ):
            await asyncio.sleep(0.1)
            async with session.get(f"{box.address}/health"):
                pass  # wakes the event loop
    assert found.items() <= backups_of(box.data).items()


def test_age_and_tar_can_open_a_backup(founded, tmp_path):
    venuebox("backup", data=founded.data)
    [path] = (founded.data / "backups").iterdir()
    key = recovery_key_file(DataDirectory(founded.data))
    (tmp_path / "opened").mkdir()

    opened = subprocess.run(["age", "-d", "-i", key, path], capture_output=True, check=True)
    subprocess.run(["tar", "x", "-C", tmp_path / "opened"], input=opened.stdout, check=True)

    assert json.loads((tmp_path / "opened" / "manifest.json").read_bytes())["number"] == 1
    for name in ("live", "test"):
        assert list_faults(tmp_path / "opened" / f"{name}.db") == []


def test_a_damaged_box_can_be_restored_from_a_copy(elsewhere, founded, tmp_path):
    venuebox("backup", data=founded.data)
    elsewhere.run("backup", "target", data=founded.data)
    (founded.data / "live.db").write_bytes(b"damaged")
    for backup in (founded.data / "backups").iterdir():
        backup.unlink()

    elsewhere.run("restore", "--latest", "--from", elsewhere.url, data=founded.data)

    with BoxProcess(founded.data, log=tmp_path / "log"):
        pass


def test_the_doctor_reports_on_copies_without_secrets(elsewhere, founded):
    venuebox("backup", data=founded.data)

    def checked():
        told = elsewhere.run("doctor", "--json", data=founded.data)
        assert SECRET not in told
        return next(c["status"] for c in json.loads(told)["checks"] if c["name"] == "backup_target")

    assert checked() == "warn"
    elsewhere.run("backup", "target", data=founded.data)
    assert checked() == "ok"


def test_a_box_refused_by_the_server_reports_it_and_shows_its_public_key(sftp, founded):
    told = sftp.run("backup", "target", data=founded.data, expect=1)
    assert "ssh-ed25519 " in told
    assert "there is no backup to copy yet" in told
    venuebox("backup", data=founded.data)
    sftp.server.authorized.write_text("")

    told = sftp.run("backup", "target", data=founded.data, expect=1)

    [line] = re.findall(r"^ssh-ed25519 \S+ .*$", told, re.MULTILINE)
    sftp.server.authorized.write_text(f"{line}\n")
    sftp.run("backup", "target", data=founded.data)
    assert read_copy_record(founded.data).trouble == ""


async def test_the_first_host_key_is_trusted_and_a_changed_one_refused(sftp, founded):
    assert await files_at(sftp, founded.data) == {}
    pinned = (founded.data / "secrets" / "known_hosts").read_text()
    sftp.server.change_host_key()
    while sftp.server.shown_host_key() in {"", pinned}:  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.05)

    with pytest.raises(TargetError):
        await files_at(sftp, founded.data)

    assert (founded.data / "secrets" / "known_hosts").read_text() == pinned
    (founded.data / "secrets" / "known_hosts").unlink()
    assert await files_at(sftp, founded.data) == {}, "the key was the only obstacle"


async def test_a_configured_host_key_is_the_only_one_trusted(sftp, founded):
    known = Elsewhere(f"{sftp.url}?hostkey={sftp.server.fingerprint()}", {}, None)
    other = Elsewhere(f"{sftp.url}?hostkey=SHA256:{'A' * 43}", {}, None)

    assert await files_at(known, founded.data) == {}
    with pytest.raises(TargetError):
        await files_at(other, founded.data)
    assert not (founded.data / "secrets" / "known_hosts").exists()


@pytest.mark.parametrize("kind", ["sftp", "s3"])
async def test_a_server_that_never_responds_does_not_delay_the_box(founded, monkeypatch, kind):
    for name in ("_CONNECT_SECONDS", "_SMALL_SECONDS"):
        monkeypatch.setattr(f"appliance.backup.targets.{name}", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        url = {
            "sftp": f"sftp://box@127.0.0.1:{port}/backups",
            "s3": f"s3://backups?endpoint=http://127.0.0.1:{port}",
        }
        with pytest.raises(TargetError):
            await files_at(Elsewhere(url[kind], {}, None), founded.data)


ENTRY = "<Size>{}</Size><LastModified>2026-11-21T00:00:00Z</LastModified></Contents>"
BACKUP = "riad-000001-2026-11-21T040012Z-abcdef.tar.age"


@contextmanager
def hostile_storage(respond):
    """Run an S3 server in a thread; yield its address as a target."""
    app, loop = web.Application(), asyncio.new_event_loop()
    app.router.add_get("/{path:.*}", respond)
    server = TestServer(app)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start_server(), loop).result(30)
    try:
        yield f"s3://backups?endpoint={server.make_url('')}"
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


async def list_files(names, size, more=""):
    text = "".join(f"<Contents><Key>{name}</Key>{ENTRY.format(size)}" for name in names)
    return web.Response(text=f"<ListBucketResult>{text}{more}</ListBucketResult>")


async def send(request, block, *, claimed=10**15, every=0.0):
    """Send the block repeatedly, as a file or a list of the claimed size."""
    headers = {"ETag": "x", "Last-Modified": "Sat, 21 Nov 2026 00:00:00 GMT"}
    response = web.StreamResponse(headers=headers | {"Content-Length": str(claimed)})
    await response.prepare(request)
    with suppress(ConnectionError):
        while True:
            await response.write(block)
            await asyncio.sleep(every)
    return response


def fetch_from(url, folder, **more):
    settings = with_settings(backup={"target": url, "target_key": "a", "target_secret": "b"}).backup
    job = Get(str(folder), settings, "", str(folder), 0, **more)
    with pytest.raises(TargetError):
        run_child(job, lambda _: None)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_an_endless_list_of_files_affects_only_the_child_process(tmp_path):
    """Both with many pages and with one page that never ends."""
    served = []

    async def pages(request):
        served.append(1)
        names = (f"{len(served)}-{number}{'x' * 200}" for number in range(1000))
        token = "<NextContinuationToken>x</NextContinuationToken>"
        return await list_files(names, 1, f"<IsTruncated>true</IsTruncated>{token}")

    async def page(request):
        return await send(request, b"<ListBucketResult>" + b" " * (1 << 18))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with hostile_storage(pages) as url:
        fetch_from(url, tmp_path)
    with hostile_storage(page) as url:
        after = fetch_from(url, tmp_path)

    assert len(served) < 50
    assert after - before < 100_000  # KiB


def test_a_file_that_grew_or_exceeds_the_disk_is_not_fetched(tmp_path):
    async def respond(request):
        if "list-type" in request.query:
            return await list_files([BACKUP], 10**15)
        return await send(request, bytes(1 << 16))

    with hostile_storage(respond) as url:
        fetch_from(url, tmp_path)
        assert list(tmp_path.iterdir()) == []
        settings = with_settings(backup={"target": url}).backup
        run_child(Get(str(tmp_path), settings, "", str(tmp_path), 0, 5_000_000), lambda _: None)

    assert (tmp_path / BACKUP).stat().st_size == 5_000_000


def test_a_very_slow_target_is_given_up_at_the_deadline(tmp_path):
    async def respond(request):
        if "list-type" in request.query:
            return await list_files([BACKUP], 1000)
        return await send(request, b"x", claimed=1000, every=0.1)

    with hostile_storage(respond) as url:
        fetch_from(url, tmp_path, seconds=3)


async def test_an_error_of_a_target_is_reported_without_the_secret(s3, founded):
    url = s3.url.replace("s3://backups", "s3://no-such-bucket")

    with pytest.raises(TargetError) as refused:
        await files_at(Elsewhere(url, s3.environ, None), founded.data)

    assert SECRET not in str(refused.value)


async def test_an_interrupted_copy_leaves_no_backup_and_is_overwritten(sftp, founded):
    venuebox("backup", data=founded.data)
    [name] = backups_of(founded.data)
    sftp.server.copies.mkdir()
    part = sftp.server.copies / f".{parse_name(name).venue}.tar.age.part"
    part.write_bytes(b"half of it")
    assert await files_at(sftp, founded.data) == {}

    sftp.run("backup", "target", data=founded.data)

    assert [path.name for path in sftp.server.copies.iterdir()] == [name]
