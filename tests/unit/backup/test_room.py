"""A disk with little room: no backup and no trial is begun that would close the bookings."""

import errno
from types import SimpleNamespace

import pytest

from appliance.backup.catalogue import read_record
from appliance.backup.copies import Copier, read_copy_record
from appliance.core.errors import OperatorError
from tests.conftest import with_settings
from tests.unit.backup.making import a_box_with_guests, a_maker
from tests.unit.backup.test_copies import Shelf

MIB = 1 << 20


@pytest.fixture
def made(tmp_path):
    return a_box_with_guests(tmp_path)


@pytest.fixture
def written(made, monkeypatch):
    """The copies of databases that were begun."""
    copies = []

    def copy(path, _copy):
        copies.append(path.name)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("appliance.backup.create.copy_database", copy)
    return copies


def leave_free(monkeypatch, size):
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=size))


def size_of(made):
    """The space for the two copies."""
    return sum((made.root / f"{name}.db").stat().st_size for name in ("live", "test"))


@pytest.mark.parametrize("is_frequent", [True, False])
def test_without_room_beside_the_bookings_nothing_is_copied(
    made, written, monkeypatch, is_frequent
):
    leave_free(monkeypatch, size_of(made) + MIB)

    with pytest.raises(OperatorError):
        a_maker(made).make(is_frequent=is_frequent)

    assert written == []
    record = read_record(made.root)
    assert record.latest is None
    assert record.trouble
    assert list((made.root / "backups").iterdir()) == []


def test_with_room_it_begins(made, written, monkeypatch):
    leave_free(monkeypatch, size_of(made) + 16 * MIB)

    with pytest.raises(OperatorError):
        a_maker(made).make()

    assert written == ["live.db"]


def test_without_room_for_a_trial_the_copy_is_made_all_the_same(made, monkeypatch):
    path, _ = a_maker(made).make()
    shelf, maker = Shelf(), a_maker(made)
    monkeypatch.setattr("appliance.backup.copies.open_target", shelf.open)
    settings = with_settings(backup={"target": "sftp://box@nas.example/backups"})
    copier = Copier(maker.directory, settings, made.clock, maker.zones)
    leave_free(monkeypatch, 16 * MIB)

    with pytest.raises(OperatorError):
        copier.run()

    assert shelf.calls == [("put", path.name)]
    record = read_copy_record(made.root)
    assert (record.file, record.proven_at) == (path.name, None)
    assert record.failing_since == made.clock.now()
    leave_free(monkeypatch, size_of(made) + path.stat().st_size + 16 * MIB)
    assert copier.run().proven_at == made.clock.now()
