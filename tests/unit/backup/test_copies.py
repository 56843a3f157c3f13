"""Copies at a target: the latest backup, thinned, restored on trial, and fetched again."""

from contextlib import closing

import pytest

from appliance.backup.archive import open_backup
from appliance.backup.catalogue import list_backups, read_record, slug_of
from appliance.backup.copies import Copier, UnusableCopy, fetch_latest, read_copy_record
from appliance.backup.restore import restore_blank
from appliance.backup.targets import TargetError
from appliance.core.data_directory import DataDirectory
from appliance.database.connection import open_connection
from tests.conftest import with_settings
from tests.unit.backup.making import KEY, a_box_with_guests, a_maker
from tests.unit.backup.shelf import Shelf

DAY = 86_400
TARGET = "sftp://box@nas.example/backups"


@pytest.fixture
def shelf(monkeypatch):
    made = Shelf()
    monkeypatch.setattr("appliance.backup.copies.open_target", made.open)
    return made


@pytest.fixture
def made(tmp_path):
    return a_box_with_guests(tmp_path)


def a_copier(made, target=TARGET):
    maker = a_maker(made)
    return Copier(maker.directory, with_settings(backup={"target": target}), made.clock,
                  maker.zones)  # fmt: skip


def test_nothing_is_due_without_a_target_or_before_the_first_backup(made, shelf):
    assert a_copier(made).next_due() is None
    a_maker(made).make()
    assert a_copier(made, "").next_due() is None
    assert a_copier(made).next_due() == 0


def test_the_latest_backup_is_copied_once_and_restored_on_trial(made, shelf):
    path, _ = a_maker(made).make()
    copier = a_copier(made)

    for _ in range(2):
        record = copier.run()

    assert shelf.files == {path.name: path.read_bytes()}
    assert shelf.calls == [("put", path.name), ("get", path.name)]
    assert (record.file, record.at, record.proven_at) == (path.name, *[made.clock.now()] * 2)
    assert copier.next_due() == made.clock.now() + 7 * DAY * 1000
    assert list(made.directory.tmp.iterdir()) == []


def test_a_week_later_a_copy_is_restored_on_trial_again(made, shelf):
    a_maker(made).make()
    copier = a_copier(made)
    copier.run()
    made.clock.advance(7 * DAY)
    path, _ = a_maker(made).make()

    record = copier.run()

    assert shelf.calls[-2:] == [("put", path.name), ("get", path.name)]
    assert record.proven_at == made.clock.now()


def test_another_target_begins_from_nothing(made, shelf):
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


def test_a_copy_that_the_target_damaged_is_noticed(made, shelf):
    path, _ = a_maker(made).make()
    content = path.read_bytes()
    shelf.files[path.name] = content[:-1] + bytes([content[-1] ^ 1])

    with pytest.raises(UnusableCopy):
        a_copier(made).run()

    record = read_copy_record(made.root)
    assert (record.proven_at, record.failing_since) == (None, made.clock.now())
    assert record.trouble


def test_what_fails_is_remembered_since_its_beginning_until_it_works(made, shelf):
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


def test_copies_are_thinned_as_at_home_and_those_of_others_stay(made, shelf):
    maker, copier = a_maker(made), a_copier(made)
    others = {"photo.jpg": b"a photo", "bar-2020-01-01T000000Z.venuebox-backup": b"not a backup"}
    for _ in range(20):
        path, proven = maker.make()
        venue = proven.header.venue_id.encode()
        stranger = path.name.replace(proven.header.slug, "bar")
        others[stranger] = path.read_bytes().replace(venue, venue[::-1])
        shelf.files |= others
        copier.run()
        made.clock.advance(DAY)

    here = {each.name for each, _ in list_backups(path.parent)}

    assert len(here) < 20
    assert shelf.files.keys() == here | others.keys()


def test_an_empty_folder_at_home_deletes_nothing_at_the_target(made, shelf):
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


def test_a_new_machine_is_made_from_the_latest_copy_or_a_named_one(made, shelf, tmp_path):
    first, _ = a_maker(made).make()
    a_copier(made).run()
    made.clock.advance(900)
    latest, _ = a_maker(made).make()
    a_copier(made).run()
    backup, blank = with_settings().backup, DataDirectory(tmp_path / "blank")

    named = fetch_latest(f"{TARGET}/{first.name}", backup, blank, tmp_path)
    path = fetch_latest(TARGET, backup, blank, tmp_path)

    assert named.read_bytes() == first.read_bytes()
    assert path.name == latest.name
    with open_backup(path) as file:
        zones = a_maker(made).zones
        proven = restore_blank(file, KEY, blank, made.clock, zones, lambda *_: None)
    assert proven.reservations == read_record(made.root).reservations


@pytest.mark.parametrize("wanted", ["", "/riad-2026-11-21T040012Z-2.venuebox-backup"])
@pytest.mark.parametrize("files", [[], ["riad-2026-11-21T040012Z", "bar-2026-11-21T040012Z"]])
def test_a_fetch_that_finds_none_or_two_venues_is_refused(made, shelf, tmp_path, files, wanted):
    shelf.files = {f"{name}.venuebox-backup": b"" for name in files}

    with pytest.raises(TargetError):
        fetch_latest(TARGET + wanted, with_settings().backup, made.directory, tmp_path)


def rename_venue(made, slug):
    path = made.directory.database("live")
    with closing(open_connection(path, writable=True)) as connection:
        connection.execute("UPDATE venue SET slug = ?", (slug,))


def test_a_venue_that_changed_its_slug_still_has_a_latest_copy(made, shelf, tmp_path):
    a_maker(made).make()
    a_copier(made).run()
    made.clock.advance(900)
    rename_venue(made, "dar-atlas")
    latest, _ = a_maker(made).make()
    a_copier(made).run()
    assert len({slug_of(name) for name in shelf.files}) == 2

    path = fetch_latest(TARGET, with_settings().backup, DataDirectory(tmp_path / "new"), tmp_path)

    assert path.name == latest.name


@pytest.mark.parametrize("slug", ["riad-atlas", "bar"])
def test_the_copies_of_two_venues_are_told_apart_by_their_ids(made, shelf, tmp_path, slug):
    path, proven = a_maker(made).make()
    venue = proven.header.venue_id.encode()
    shelf.files[path.name] = path.read_bytes()
    stranger = f"{slug}-2026-11-20T040012Z.venuebox-backup"
    shelf.files[stranger] = path.read_bytes().replace(venue, venue[::-1])

    with pytest.raises(TargetError):
        fetch_latest(TARGET, with_settings().backup, DataDirectory(tmp_path / "new"), tmp_path)


@pytest.mark.parametrize("name", ["/", "..", "x/../y"])
def test_the_name_of_a_file_at_the_target_leads_nowhere_else(made, shelf, tmp_path, name):
    shelf.files = {f"{name}-2026-11-21T040012Z.venuebox-backup": b"x"}

    with pytest.raises(TargetError):
        fetch_latest(TARGET, with_settings().backup, made.directory, tmp_path)
