"""The relay's operator stages a signed release for a share of the boxes; a failure stops it."""

import asyncio
import io
import os
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from runpy import run_path

import asyncssh
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.core.errors import OperatorError
from appliance.jobs import relay_updates
from appliance.jobs.relay_updates import RelayUpdates
from appliance.relay_access import access_file
from appliance.release import (
    HEAD_BYTES,
    REQUEST,
    UpdateRecord,
    read_request,
    read_update_record,
    update_lock,
    write_update_record,
)
from appliance.scheduler import Scheduler
from tests.app.relay.relay_world import TOKEN
from tests.app.relay.test_storage import sftp_of
from tests.conftest import opened_box, with_settings
from tests.unit.jobs.keeping import Timer
from web.relay import commands
from web.relay import storage as releases
from web.relay.storage import find_release, list_stages, stage_release

make_release = run_path(str(Path(__file__).parents[3] / "packaging" / "release.py"))["make_release"]
KEY, STRANGER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
MACHINE = os.uname().machine
NAMES = [f"box{number}.example" for number in range(40)]


def stage(relay, share=100, key=KEY, **changes):
    """Stage a release; return its content."""
    content = make_release(b"#" * 300_000, key, **{"version": "1.1"} | changes)
    stage_release(relay.enrolments, io.BytesIO(content), KEY.public_key(), share)
    return content


def chosen(relay, machine=MACHINE):
    return {name for name in NAMES if find_release(relay.enrolments, name, machine)}


def report(relay, name, stage_, version="1.1"):
    folder = relay.enrolments.backups / name
    folder.mkdir(parents=True, exist_ok=True)
    write_update_record(folder, UpdateRecord(stage_, 1, version))


async def test_a_share_of_the_boxes_gets_it_and_a_larger_one_adds_to_them(relay):
    found = []
    for share in (0, 25, 50, 100):
        stage(relay, share)
        found.append(chosen(relay))
    assert (found[0], found[3]) == (set(), set(NAMES))
    assert found[1] < found[2] < found[3]
    assert chosen(relay, "riscv") == set()
    stage(relay, 25, version="1.2")
    assert chosen(relay) != found[1]


async def test_what_is_not_signed_or_damaged_is_not_staged(relay):
    for key, changes in ((STRANGER, {}), (KEY, {"sha256": "00" * 32})):
        with pytest.raises(OperatorError):
            stage(relay, key=key, **changes)
    for content in (b"", make_release(b"#" * 300_000, KEY, version="1.1")[:100_000]):
        with pytest.raises(OperatorError):
            stage_release(relay.enrolments, io.BytesIO(content), KEY.public_key(), 100)
    assert list_stages(relay.enrolments) == {}


async def test_the_share_of_an_earlier_release_does_not_offer_a_new_one(relay, monkeypatch):
    stage(relay, 100)

    def cut(*_):
        raise BlockingIOError

    monkeypatch.setattr(releases, "write_json", cut)
    with pytest.raises(BlockingIOError):
        stage(relay, 10, version="1.2")
    assert chosen(relay) == set()


async def test_a_box_reads_its_release_and_cannot_change_it(relay):
    content = stage(relay)
    path = f"release/{MACHINE}"
    async with sftp_of(relay, (await relay.enrol(NAMES[0])).key) as sftp:
        async with sftp.open(path, "rb") as file:
            assert await file.read() == content
            with pytest.raises(asyncssh.SFTPError):
                await file.write(b"x")
        for operation in (
            sftp.open(path, "wb"), sftp.open(path, "rb+"), sftp.remove(path),
            sftp.rename(path, "mine"), sftp.open("release/riscv", "rb"),
            sftp.open("release/../boxes", "rb"),
        ):  # fmt: skip
            with pytest.raises(asyncssh.SFTPError):
                await operation
        stage(relay, 0)
        with pytest.raises(asyncssh.SFTPNoSuchFile):
            await sftp.open(path, "rb")
    assert (relay.enrolments.releases / f"{MACHINE}.release").read_bytes() == content


@pytest.mark.parametrize("outcome", ["went_back", "stays", "failed"])
async def test_a_failure_stops_the_release_until_it_is_staged_again(relay, outcome):
    await relay.enrol(NAMES[0])
    stage(relay)
    report(relay, NAMES[0], outcome, "1.0")
    report(relay, "stranger.example", outcome)
    report(relay, NAMES[0], "done")
    assert chosen(relay) == set(NAMES)
    report(relay, NAMES[0], outcome)
    assert chosen(relay) == set()
    async with relay.call(relay.status) as (reader, writer):
        request = f"GET / HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\nHost: localhost\r\n\r\n"
        writer.write(request.encode())
        assert f"1.1 {outcome}" in (await reader.read()).decode()
    stage(relay)
    assert chosen(relay) == set(NAMES)
    (relay.enrolments.backups / NAMES[0] / "last-update.json").write_bytes(b"{" * 100_000)
    assert chosen(relay) == set(NAMES)


async def test_the_command_stages_a_release(relay, tmp_path, monkeypatch):
    from web.main import main  # noqa: PLC0415 - reads all commands

    monkeypatch.setattr(commands, "read_release_key", KEY.public_key)
    (tmp_path / "a.release").write_bytes(make_release(b"#", KEY, version="1.1"))
    environ = {"VENUEBOX_DATA": str(tmp_path / "relay")}
    words = ["relay", "release", str(tmp_path / "a.release"), "--share"]
    assert main([*words, "101"], environ) == 1
    assert main([*words, "10"], environ) == 0
    assert main(["relay", "release", str(tmp_path / "missing")], environ) == 1
    assert list_stages(relay.enrolments)[MACHINE].share == 10


class House:
    """A box of version 1.0 that has joined the relay."""

    def __init__(self, box, root, relay):
        self.box, self.root, self.relay = box, root, relay
        self.program = root / "bin" / "venuebox"
        self.program.parent.mkdir()
        self.updates = RelayUpdates(box, self.program, lambda _root: True, lambda: True)
        self.scheduler = Scheduler(box.clock, Timer())
        self.scheduler.start(self.updates.job)

    async def at(self, hours):
        """Let time pass; return the source of the update that was requested, or None."""
        await self.scheduler.settle()
        self.box.clock.machine.advance(hours * 3600)
        self.updates.job.changed()
        await self.scheduler.settle()
        return read_request(self.root) if (self.root / REQUEST).exists() else None

    def reported(self):
        return read_update_record(self.relay.enrolments.backups / NAMES[0])


@pytest.fixture
async def house(relay, tmp_path, clock, monkeypatch):
    """It is 19:00 at the venue; the quiet hour is 5:00."""
    monkeypatch.setattr(relay_updates, "own_version", lambda: "1.0")
    monkeypatch.setattr(relay_updates, "read_release_key", KEY.public_key)
    root = tmp_path / "box"
    root.mkdir()
    settings = with_settings(update={"from_relay": True})
    async with opened_box(root, clock, settings) as box:
        file = access_file(root)
        file.parent.mkdir(exist_ok=True)
        (await relay.enrol(NAMES[0])).save(file)
        found = House(box, root, relay)
        yield found
        await found.scheduler.close()


async def test_a_staged_release_is_installed_in_the_quiet_hour_and_not_tried_twice(house, relay):
    content = stage(relay)
    assert await house.at(0) is None
    assert await house.at(9) is None
    source = await house.at(1.5)
    fetched = house.root / "relay.release"
    assert (source, fetched.read_bytes()) == (str(fetched), content)
    assert read_update_record(house.root).stage == "asked"
    (house.root / REQUEST).unlink()
    for stage_ in ("went_back", "done"):
        record = UpdateRecord(stage_, house.box.clock.now(), "1.1")
        write_update_record(house.root, record)
        assert await house.at(0) is None
        assert house.reported() == record
        assert not fetched.exists()
        assert await house.at(24) is None


@pytest.mark.parametrize(
    ("stage_", "version", "outcome"),
    [
        ("asked", "", "failed"), ("trial", "1.1", "failed"), ("trial", "1.0", "done"),
        ("start", "0.9", "done"), ("start", "1.0", "done"), ("start", "1.1", "went_back"),
    ],
)  # fmt: skip
async def test_a_box_whose_update_was_cut_off_reports_it_and_installs_the_next_release(
    house, relay, stage_, version, outcome
):
    stage(relay, version="1.2")
    write_update_record(house.root, UpdateRecord(stage_, house.box.clock.now(), version))
    with update_lock(house.program):
        assert await house.at(1) is None
        assert house.reported() is None
    assert await house.at(0) is None
    assert (house.reported().stage, house.reported().version) == (outcome, version)
    assert await house.at(9.5) is not None


@pytest.mark.parametrize(
    ("key", "changes"),
    [(STRANGER, {}), (KEY, {"version": "1.0"}), (KEY, {"minimum": "1.0.5"})],
)
async def test_a_box_trusts_its_own_key_and_not_the_relay(house, relay, key, changes):
    stage(relay)
    path = relay.enrolments.releases / f"{MACHINE}.release"
    path.write_bytes(make_release(b"#", key, **{"version": "1.1"} | changes))
    assert await house.at(10.5) is None
    assert read_update_record(house.root) is None


async def test_a_relay_cannot_fill_the_disk_behind_a_signed_head(house, relay):
    content = stage(relay)
    path = relay.enrolments.releases / f"{MACHINE}.release"
    path.write_bytes(content + bytes(HEAD_BYTES))
    assert await house.at(10.5) is None
    assert not list(house.root.glob("*relay.release*"))


async def test_the_box_answers_while_a_fetched_release_is_synced(house, relay, monkeypatch):
    stage(relay)
    loop, fsync, answered = asyncio.get_running_loop(), os.fsync, []

    def slow_fsync(handle):
        answer = Future()
        loop.call_soon_threadsafe(answer.set_result, None)
        answered.append(bool(wait([answer], timeout=2).done))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    assert await house.at(10.5) is not None
    assert set(answered) == {True}


async def test_nothing_is_installed_in_the_evening_after_a_night_without_power(house, relay):
    stage(relay)
    assert await house.at(13) is None
    assert await house.at(21.5) is not None


async def test_a_box_whose_owner_has_not_allowed_it_asks_for_nothing(house, relay):
    stage(relay)
    house.updates._box = replace(house.box, settings=with_settings())
    assert await house.at(10.5) is None
    write_update_record(house.root, UpdateRecord("went_back", 1, "1.1"))
    assert await house.at(24) is None
    assert house.reported() is None


async def test_a_relay_that_does_not_answer_is_asked_again(house, relay):
    stage(relay)
    relay.ssh.close()
    assert await house.at(10.5) is None
    await relay.listen(relay.address.port)
    assert await house.at(0) is not None
