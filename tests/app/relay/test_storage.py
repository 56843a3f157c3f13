"""The relay's disk: each box has its own folder with a quota, and no way out of it."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from appliance.backup import targets
from appliance.backup.targets import TargetError, open_target
from appliance.core.data_directory import DataDirectory
from appliance.relay_access import BOX_USER, access_file
from tests.app.relay.relay_world import a_relay
from tests.conftest import with_settings
from web.relay import storage
from web.relay.enrolment import JOIN_USER
from web.relay.server import Limits

A, B = "a.example", "b.example"
BACKUP = "riad-2026-11-21T190000Z.venuebox-backup"
QUOTA = 1_000_000
RELAY = with_settings(backup={"target": "relay:"}).backup


@pytest.fixture
async def relay(tmp_path):
    async with a_relay(tmp_path / "relay", Limits(backup_bytes=QUOTA)) as world:
        yield world


@asynccontextmanager
async def sftp_of(relay, key, user=BOX_USER):
    """An SFTP session with the key of a box, by a client that asks for anything."""
    async with (
        asyncssh.connect(
            relay.address.host, relay.address.port, username=user, known_hosts=None,
            client_keys=[asyncssh.import_private_key(key)], agent_path=None, config=None,
        ) as connection,
        connection.start_sftp_client() as sftp,
    ):  # fmt: skip
        yield sftp


@pytest.fixture
async def box(relay):
    """An SFTP session of box A; B has a backup too."""
    (relay.enrolments.backups / B).mkdir(parents=True)
    (relay.enrolments.backups / B / BACKUP).write_bytes(b"of b")
    async with sftp_of(relay, (await relay.enrol(A)).key) as sftp:
        yield sftp


def files_of(relay, name=A):
    folder = relay.enrolments.backups / name
    return {path.name: path.stat().st_size for path in folder.glob("*")}


async def refused(operation):
    with pytest.raises(asyncssh.SFTPError):
        await operation


async def test_a_box_keeps_its_backups_there(relay, tmp_path):
    directory = DataDirectory(tmp_path / "box")
    (await relay.enrol(A)).save(_made(access_file(directory.root)))
    source = tmp_path / BACKUP
    source.write_bytes(bytes(range(256)) * 1000)

    async with open_target(RELAY, directory) as target:
        assert await target.list() == {}
        await target.put(source, 256_000)
        assert await target.list() == files_of(relay) == {BACKUP: 256_000}
        await target.put(source, 256_000)  # once more
        await target.get(BACKUP, tmp_path / "fetched", 256_000)
        assert (tmp_path / "fetched").read_bytes() == source.read_bytes()
        assert await target.read(BACKUP, 256) == bytes(range(256))
        await target.delete(BACKUP)
    assert files_of(relay) == {}


async def test_a_relay_that_lists_or_sends_without_end_fills_nothing(relay, tmp_path, monkeypatch):
    directory = DataDirectory(tmp_path / "box")
    (await relay.enrol(A)).save(_made(access_file(directory.root)))
    (relay.enrolments.backups / A).mkdir(parents=True)
    (relay.enrolments.backups / A / BACKUP).write_bytes(bytes(100_000))

    async def list_without_end(_self, _path):
        while True:
            yield asyncssh.SFTPName(BACKUP.encode(), attrs=asyncssh.SFTPAttrs(size=1))

    monkeypatch.setattr(storage.BoxFiles, "scandir", list_without_end)
    async with open_target(RELAY, directory) as target:
        await target.get(BACKUP, tmp_path / "fetched", 1000)
        assert (tmp_path / "fetched").stat().st_size == 1000
        with pytest.raises(TargetError, match="too many files"):
            await target.list()


@pytest.mark.parametrize("call", ["list", "get", "put", "read", "write_marker"])
async def test_a_server_whose_disk_hangs_is_given_up(relay, tmp_path, monkeypatch, call):
    directory, source = DataDirectory(tmp_path / "box"), tmp_path / BACKUP
    (await relay.enrol(A)).save(_made(access_file(directory.root)))
    (relay.enrolments.backups / A).mkdir(parents=True)
    for path in (source, relay.enrolments.backups / A / BACKUP):
        path.write_bytes(bytes(100_000))
    arguments = {
        "list": (), "get": (BACKUP, tmp_path / "fetched", 100_000), "put": (source, 100_000),
        "read": (BACKUP, 10), "write_marker": ("marker", b"x"),
    }  # fmt: skip

    async def hang(_self, file, *_):
        if not isinstance(file, bytes):
            file.close()
        await asyncio.Event().wait()

    async def list_slowly(self, path):
        await hang(self, path)
        yield

    for name in ("read", "write", "close"):
        monkeypatch.setattr(storage.BoxFiles, name, hang)
    monkeypatch.setattr(storage.BoxFiles, "scandir", list_slowly)
    monkeypatch.setattr(targets, "_SMALL_SECONDS", 0.5)
    monkeypatch.setattr(targets, "_SLOWEST", 10**9)
    async with asyncio.timeout(5):
        with pytest.raises(TargetError, match="in time"):
            async with open_target(RELAY, directory) as target:
                await getattr(target, call)(*arguments[call])


def _made(file: Path) -> Path:
    file.parent.mkdir(parents=True)
    return file


@pytest.mark.parametrize(
    "path",
    [f"../{B}/{BACKUP}", f"/../{B}/{BACKUP}", f"x/../../{B}/{BACKUP}", "../../keys/ssh_host_key",
     f"a/{BACKUP}", "a\0b", "a\nb", "é", "x" * 201],
)  # fmt: skip
async def test_no_name_leads_out_of_the_folder(relay, box, path):
    for operation in (
        box.getsize(path), box.open(path, "rb"), box.open(path, "wb"), box.remove(path),
        box.rename(path, "mine"), box.readdir(path),
    ):  # fmt: skip
        await refused(operation)
    assert files_of(relay) == {}
    assert files_of(relay, B) == {BACKUP: 4}


async def test_neither_links_nor_folders_nor_attributes_can_be_made(relay, box):
    async with box.open("mine", "wb") as file:
        await file.write(b"1")
        await refused(file.setstat(asyncssh.SFTPAttrs(size=10**12)))
    for operation in (
        box.symlink(f"../{B}/{BACKUP}", "link"), box.link("mine", "other"), box.mkdir("folder"),
        box.truncate("mine", 10**12), box.chmod("mine", 0o777), box.rmdir("."), box.remove("."),
        box.rename(".", "moved"), box.open("mine", "ab"),
    ):  # fmt: skip
        await refused(operation)
    assert files_of(relay) == {"mine": 1}
    assert await box.realpath("/mine") == "/mine"


async def test_a_box_cannot_use_more_than_its_quota(relay, box):
    async with box.open("mine", "wb") as file:
        await file.write(bytes(QUOTA - 10))
        await refused(file.write(bytes(11)))
        await refused(file.write(b"1", offset=10**12))
        await file.write(b"again", offset=0)
    await refused(_write(box, "other", 11))
    await _write(box, "third", 10)
    assert sum(files_of(relay).values()) == QUOTA
    async with sftp_of(relay, (await relay.enrol(B)).key) as other:
        await _write(other, "own", 1000)


async def _write(sftp, name, count):
    async with sftp.open(name, "wb") as file:
        await file.write(bytes(count))


async def test_the_number_of_files_is_limited_and_so_is_that_of_open_ones(relay, box, monkeypatch):
    monkeypatch.setattr(storage, "_FILES_MAX", 3)
    monkeypatch.setattr(storage, "_OPEN_MAX", 2)
    for name in ("1", "2", "3"):
        await _write(box, name, 1)
    await refused(_write(box, "4", 1))
    await _write(box, "3", 2)
    held = [await box.open("1", "rb"), await box.open("2", "rb")]
    await refused(box.open("3", "rb"))
    await held.pop().close()
    await box.open("3", "rb")
    box.exit()
    await relay.until(lambda: relay.boxes.storage[A].open == 0)


async def test_a_full_disk_is_left_to_the_relay(box, monkeypatch):
    monkeypatch.setattr(storage, "_FREE_LEAST", 2**62)
    await refused(_write(box, "mine", 1))


async def test_a_revoked_box_is_refused_in_the_session_that_it_has(relay, box):
    await _write(box, "mine", 1)
    file = await box.open("mine", "rb+")
    relay.enrolments.revoke(A)
    relay.boxes.reload()
    for operation in (
        file.read(1), file.write(b"2"), box.readdir("."), box.remove("mine"), box.getsize("mine"),
    ):  # fmt: skip
        await refused(operation)
    assert files_of(relay) == {"mine": 1}


async def test_a_code_or_an_unknown_key_opens_nothing(relay):
    key = asyncssh.generate_private_key("ssh-ed25519").export_private_key()
    with pytest.raises(asyncssh.PermissionDenied):
        async with sftp_of(relay, key):
            pass
    async with sftp_of(relay, key, JOIN_USER + relay.invite(A).secret) as sftp:
        for operation in (sftp.readdir("."), sftp.open("mine", "wb"), sftp.getsize(".")):
            await refused(operation)


async def test_a_relay_may_keep_no_backups(tmp_path):
    async with a_relay(tmp_path / "relay", Limits(backup_bytes=0)) as relay:
        directory = DataDirectory(tmp_path / "box")
        (await relay.enrol(A)).save(_made(access_file(directory.root)))
        source = tmp_path / BACKUP
        source.write_bytes(bytes(100_000))
        with pytest.raises(TargetError):
            async with open_target(RELAY, directory) as target:
                await target.put(source, 100_000)
        assert sum(files_of(relay).values()) == 0


async def test_no_backup_goes_to_a_machine_with_another_host_key_than_the_relays(relay, tmp_path):
    access, directory = await relay.enrol(A), DataDirectory(tmp_path / "box")
    async with a_relay(tmp_path / "relay") as impostor:  # with the same boxes
        at = replace(relay.address, port=impostor.address.port)
        replace(access, relay=at).save(_made(access_file(directory.root)))
        with pytest.raises(TargetError):
            async with open_target(RELAY, directory):
                pass
        real = replace(at, fingerprint=impostor.address.fingerprint)
        replace(access, relay=real).save(access_file(directory.root))
        async with open_target(RELAY, directory) as target:
            assert await target.list() == {}
