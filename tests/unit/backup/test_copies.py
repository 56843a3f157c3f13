"""Copies at a target: copying the latest backup, deleting old ones, trial restores, fetching."""

from types import SimpleNamespace

import pytest

from appliance.backup.archive import open_backup
from appliance.backup.catalogue import list_backups
from appliance.backup.copies import Copier, UnusableCopy, fetch_latest, read_copy_record
from appliance.backup.restore import restore_blank
from appliance.backup.targets import TargetError
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from tests.conftest import with_settings
from tests.unit.backup.making import KEY, a_box_with_guests, a_maker
from tests.unit.backup.shelf import Shelf

DAY = 86_400
TARGET = "sftp://box@nas.example/backups"


@pytest.fixture
def shelf(monkeypatch):
    made = Shelf()
    monkeypatch.setattr("appliance.backup.copies.run_child", made.run)
    return made


@pytest.fixture
def made(tmp_path):
    return a_box_with_guests(tmp_path)


def a_copier(made, target=TARGET):
    maker = a_maker(made)
    return Copier(maker.directory, with_settings(backup={"target": target}), made.clock,
                  maker.zones)  # fmt: skip


def test_no_copy_is_due_without_a_target_or_before_the_first_backup(made, shelf):
    assert a_copier(made).next_due() is None
    a_maker(made).make()
    assert a_copier(made, "").next_due() is None
    assert a_copier(made).next_due() == 0


def test_the_latest_backup_is_copied_once_and_then_restored_on_trial(made, shelf):
    path, _ = a_maker(made).make()
    copier = a_copier(made)

    for _ in range(2):
        record = copier.run()

    assert shelf.files == {path.name: path.read_bytes()}
    assert shelf.calls == [("put", path.name), ("get", path.name)]
    assert (record.file, record.at, record.proven_at) == (path.name, *[made.clock.now()] * 2)
    assert copier.next_due() == made.clock.now() + 7 * DAY * 1000
    assert list(made.directory.tmp.iterdir()) == []


def test_one_copy_a_week_is_restored_on_trial(made, shelf):
    a_maker(made).make()
    copier = a_copier(made)
    copier.run()
    made.clock.advance(7 * DAY)
    path, _ = a_maker(made).make()

    record = copier.run()

    assert shelf.calls[-2:] == [("put", path.name), ("get", path.name)]
    assert record.proven_at == made.clock.now()


def test_copying_to_a_new_target_starts_from_the_beginning(made, shelf):
    a_maker(made).make()
    a_copier(made).run()

    other = a_copier(made, "s3://bucket/backups")

    assert other.next_due() == 0
    assert other.run().target == "s3://bucket/backups"


def test_a_copy_that_the_target_truncated_is_copied_again(made, shelf):
    path, _ = a_maker(made).make()
    shelf.files[path.name] = b"short"

    a_copier(made).run()

    assert shelf.files[path.name] == path.read_bytes()


def test_a_copy_that_the_target_damaged_is_detected(made, shelf):
    path, _ = a_maker(made).make()
    content = path.read_bytes()
    shelf.files[path.name] = content[:-1] + bytes([content[-1] ^ 1])

    with pytest.raises(UnusableCopy):
        a_copier(made).run()

    record = read_copy_record(made.root)
    assert (record.proven_at, record.failing_since) == (None, made.clock.now())
    assert record.trouble


def test_a_failure_is_recorded_with_its_start_until_a_copy_succeeds(made, shelf):
    a_maker(made).make()
    copier, began = a_copier(made), made.clock.now()
    for trouble in ("no route", "refused"):
        shelf.trouble = trouble
        with pytest.raises(TargetError):
            copier.run()
        made.clock.advance(60)

    record = read_copy_record(made.root)
    assert (record.failing_since, record.trouble, record.at) == (began, "refused", None)

    shelf.trouble = ""
    copier.run()
    assert read_copy_record(made.root).failing_since is None


def test_old_copies_are_deleted_like_local_backups_and_those_of_other_boxes_are_kept(made, shelf):
    maker, copier = a_maker(made), a_copier(made)
    others = {"photo.jpg": b"a photo", "bar-000001-2020-01-01T000000Z-abcdef.tar.age": b"other"}
    shelf.files |= others
    for _ in range(20):
        path, _ = maker.make(is_frequent=True)
        copier.run()
        made.clock.advance(60)

    here = {each.name for each in list_backups(path.parent)}

    assert len(here) < 20
    assert shelf.files.keys() == here | others.keys()


def test_an_empty_backup_folder_does_not_delete_the_copies_at_the_target(made, shelf):
    maker, copier = a_maker(made), a_copier(made)
    for _ in range(3):
        path, _ = maker.make()
        copier.run()
        made.clock.advance(DAY)
    for each in path.parent.iterdir():
        each.unlink()
    maker.make()

    copier.run()

    assert len(shelf.files) == 4


def test_a_copy_is_made_even_without_disk_space_for_the_trial_restore(made, shelf, monkeypatch):
    path, _ = a_maker(made).make()
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=16 << 20))

    with pytest.raises(OperatorError, match="disk space"):
        a_copier(made).run()

    record = read_copy_record(made.root)
    assert shelf.files.keys() == {path.name}
    assert (record.file, record.proven_at) == (path.name, None)
    assert record.failing_since == made.clock.now()


def fetch(made, source, folder):
    return fetch_latest(source, with_settings().backup, made.directory, folder, lambda *_: None)


def test_a_new_machine_can_be_restored_from_the_latest_copy_or_a_named_one(made, shelf, tmp_path):
    first, _ = a_maker(made).make()
    a_copier(made).run()
    latest, manifest = a_maker(made).make()
    a_copier(made).run()
    blank = DataDirectory(tmp_path / "blank")

    named = fetch(made, f"{TARGET}/{first.name}", tmp_path)
    path = fetch(made, TARGET, tmp_path)

    assert named.read_bytes() == first.read_bytes()
    assert path.name == latest.name
    with open_backup(path) as file:
        zones = a_maker(made).zones
        restored = restore_blank(file, KEY, blank, made.clock, zones, lambda *_: None)
    assert restored == manifest


RIAD, BAR = (f"{slug}-000001-2026-11-21T040012Z-{slug}.tar.age" for slug in ("abcdef", "fedcba"))


@pytest.mark.parametrize("wanted", ["", f"/{RIAD.replace('000001', '000002')}", "/x.tar.age"])
@pytest.mark.parametrize("files", [[], [RIAD, BAR], ["x.tar.age", "../x.tar.age"]])
def test_fetching_is_refused_if_the_target_has_no_backup_or_those_of_two_venues(
    made, shelf, tmp_path, files, wanted
):
    shelf.files = dict.fromkeys(files, b"")

    with pytest.raises(TargetError):
        fetch(made, TARGET + wanted, tmp_path)
