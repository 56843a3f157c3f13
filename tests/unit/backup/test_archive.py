"""A complete backup is read. A damaged, foreign or malicious one is refused."""

import errno
import io
import os
import tarfile

import msgspec
import pyrage
import pytest

from appliance.backup import archive
from appliance.backup.archive import Manifest, open_backup, read_archive
from appliance.backup.recovery_key import RecoveryKey
from appliance.backup.restore import restore_latest
from appliance.core.errors import OperatorError
from appliance.core.tokens import Tokens
from appliance.database.integrity import list_faults, session
from appliance.database.migrate import PAGE_BYTES, newest_schema
from tests.unit.backup.making import KEY, a_box_with_guests, a_maker

MANIFEST = Manifest("Riad Atlas", "v-1", 1, "2026-11-21T04:00:00.000Z", "1.0", 1, {"live.db": {}})
NEEDED = {"live.db": b"live", "test.db": b"test", "secrets/master.key": b"key"}


def a_backup(path, files, key=KEY, manifest=MANIFEST, kind=tarfile.REGTYPE):
    """Write a backup with any content, as somebody with the key could."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in {"manifest.json": msgspec.json.encode(manifest), **files}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.type = kind if name == "x" else tarfile.REGTYPE
            tar.addfile(member, io.BytesIO(content))
    path.write_bytes(pyrage.encrypt(made.getvalue(), [key.identity.to_public()]))
    return path


def read(path, folder=None):
    with open_backup(path) as file:
        return read_archive(file, KEY, folder, lambda *_: None, newest_schema())


def test_an_archive_written_by_tar_and_age_can_be_restored(tmp_path):
    path, folder = a_backup(tmp_path / "a", NEEDED | {"tls/a/b": b"x"}), tmp_path / "folder"
    folder.mkdir()

    assert read(path, folder) == MANIFEST

    found = {str(each.relative_to(folder)): each for each in folder.rglob("*") if each.is_file()}
    assert {name: each.read_bytes() for name, each in found.items()} == NEEDED | {"tls/a/b": b"x"}
    assert {each.stat().st_mode & 0o777 for each in found.values()} == {0o600}


@pytest.mark.parametrize(
    "files",
    [{"../x": b""}, {"/etc/x": b""}, {"secrets/../../x": b""}, {"live.db/x": b""}, {"x" * 101: b""},
     {"x": b""}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.GNUTYPE_SPARSE])
def test_an_archive_with_an_unexpected_file_is_refused(tmp_path, files, kind):
    folder = tmp_path / "folder"
    folder.mkdir()

    with pytest.raises(OperatorError):
        read(a_backup(tmp_path / "a", NEEDED | files, kind=kind), folder)

    assert {path.name for path in tmp_path.iterdir()} == {"a", "folder"}


@pytest.mark.parametrize("name", NEEDED)
def test_a_backup_without_a_database_or_its_key_is_refused(tmp_path, name):
    files = {other: content for other, content in NEEDED.items() if other != name}

    with pytest.raises(OperatorError, match="incomplete"):
        read(a_backup(tmp_path / "a", files))


@pytest.mark.parametrize("size", [8**11 - 1, 1 << 62])
def test_a_file_that_claims_a_false_size_does_not_use_that_much_memory(tmp_path, size):
    path = tmp_path / "a"
    member = tarfile.TarInfo("manifest.json")
    member.size = size
    claim = member.tobuf(tarfile.GNU_FORMAT)
    path.write_bytes(pyrage.encrypt(claim, [KEY.identity.to_public()]))

    with pytest.raises(OperatorError):
        read(path)


def test_a_wrong_recovery_key_and_a_newer_schema_are_refused_with_the_reason(tmp_path):
    other = RecoveryKey(str(pyrage.x25519.Identity.generate()))
    newer = msgspec.structs.replace(MANIFEST, schema=newest_schema() + 1)

    with pytest.raises(OperatorError, match="a different recovery key"):
        read(a_backup(tmp_path / "a", NEEDED, other))
    with pytest.raises(OperatorError, match="newer"):
        read(a_backup(tmp_path / "b", NEEDED, manifest=newer))


@pytest.mark.parametrize(
    "changes", [{"venue": 5}, {"schema": "1"}, {"made_at": "yesterday"}, {"rows": [1]}], ids=str
)
def test_a_manifest_with_impossible_values_is_reported_as_damaged(tmp_path, changes):
    raw = msgspec.to_builtins(MANIFEST) | changes

    with pytest.raises(OperatorError, match="damaged"):
        read(a_backup(tmp_path / "a", NEEDED, manifest=raw))


@pytest.fixture
def two(tmp_path):
    """Return a box and its two backups."""
    made = a_box_with_guests(tmp_path)
    paths = []
    for _ in range(2):
        paths.append(a_maker(made).make()[0])
        made.clock.advance(86_400)
    return made, *paths


def restore(made):
    folders, zones = [made.root / "backups"], a_maker(made).zones
    return restore_latest(KEY, made.directory, folders, made.clock, zones, lambda *_: None)[0]


def test_if_the_latest_backup_cannot_be_read_the_one_before_it_is_restored(two, monkeypatch):
    made, older, latest = two
    read_source = archive._Noting.read

    def fail(self, size):
        if self._file.name == str(latest):
            raise OSError(errno.EIO, "Input/output error")
        return read_source(self, size)

    monkeypatch.setattr(archive._Noting, "read", fail)

    assert restore(made) == older


def test_a_full_disk_during_a_restore_is_not_reported_as_a_damaged_backup(two, monkeypatch):
    made, *_ = two
    live = (made.root / "live.db").read_bytes()

    def fail(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(OSError, match="No space left"):
        restore(made)

    assert (made.root / "live.db").read_bytes() == live


def test_a_restore_replaces_only_the_test_database_if_only_that_is_damaged(two):
    made, *_ = two
    live, sandbox = made.directory.database("live"), made.directory.database("test")
    with session(live, made.clock, Tokens(), a_maker(made).zones) as tx:
        tx.execute("UPDATE venue SET name = 'Riad Nouveau'")
    content = live.read_bytes()
    with sandbox.open("r+b") as file:
        file.seek(2 * PAGE_BYTES)
        file.write(bytes(PAGE_BYTES))
    assert list_faults(sandbox)

    restore(made)

    assert live.read_bytes() == content
    assert list_faults(sandbox) == []
    [aside] = made.root.glob("damaged-*")
    assert {path.name.partition("-")[0] for path in aside.iterdir()} == {"test.db"}
