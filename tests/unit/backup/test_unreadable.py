"""A backup on a disk that fails: an older one is restored, and a full disk is another matter."""

import errno
import io
import json
from contextlib import contextmanager
from dataclasses import asdict

import pytest

from appliance.backup.archive import Header, open_backup, read_header
from appliance.backup.restore import restore_latest
from appliance.core.tokens import Tokens
from appliance.database.integrity import list_faults, session
from appliance.database.migrate import PAGE_BYTES
from tests.unit.backup.making import KEY, a_box_with_guests, a_maker


class FailingFile:
    """A file whose reads fail after `reads` of them, as on a dying card."""

    def __init__(self, file, reads):
        self._file = file
        self._left = reads

    def _count(self):
        self._left -= 1
        if self._left < 0:
            raise OSError(errno.EIO, "Input/output error")

    def read(self, size):
        self._count()
        return self._file.read(size)

    def readline(self, size):
        self._count()
        return self._file.readline(size)

    def seek(self, place):
        return self._file.seek(place)


@pytest.fixture
def two(tmp_path):
    """A box, and its two backups."""
    made = a_box_with_guests(tmp_path)
    paths = []
    for _ in range(2):
        paths.append(a_maker(made).make()[0])
        made.clock.advance(86_400)
    return made, *paths


def restore(made):
    folders, zones = [made.root / "backups"], a_maker(made).zones
    return restore_latest(KEY, made.directory, folders, made.clock, zones, lambda *_: None)[0]


@pytest.mark.parametrize("reads", [0, 1, 2, 3])
def test_if_the_latest_cannot_be_read_the_one_before_it_is_restored(two, monkeypatch, reads):
    made, older, latest = two

    @contextmanager
    def open_failing(path):
        with open_backup(path) as file:
            yield FailingFile(file, reads) if path == latest else file

    monkeypatch.setattr("appliance.backup.restore.archive.open_backup", open_failing)

    assert restore(made) == older


def test_a_disk_without_room_for_the_restored_files_is_no_fault_of_the_backup(two, monkeypatch):
    made, *_ = two
    live = (made.root / "live.db").read_bytes()
    tried = []

    def unpack(_content, path):
        tried.append(path)
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("appliance.backup.archive._unpack", unpack)

    with pytest.raises(OSError, match="No space left"):
        restore(made)

    assert len(tried) == 1
    assert (made.root / "live.db").read_bytes() == live


def test_a_damaged_sandbox_alone_is_replaced_alone(two):
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


def test_a_header_of_a_later_version_is_read():
    made_at = "2026-11-21T19:00:00.000Z"
    header = Header("Riad Atlas", "riad-atlas", "1", made_at, "9.0", 1, KEY.check, "00" * 16)
    line = json.dumps({**asdict(header), "later": 1}).encode() + b"\n"

    assert read_header(io.BytesIO(b"VENUEBOX BACKUP 1\n" + line))[0] == header
