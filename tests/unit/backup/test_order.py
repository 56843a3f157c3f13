"""Backups are ordered as they were made, even if the clock was wrong for a while."""

import asyncio
import json
from datetime import date, timedelta

import pytest

from appliance.backup.archive import open_backup, show_header
from appliance.backup.catalogue import list_backups, read_record, rotate
from appliance.backup.copies import Copier, fetch_latest
from appliance.backup.restore import restore_blank, restore_latest
from appliance.box import open_box
from appliance.core.data_directory import DataDirectory
from appliance.core.settings import Settings
from appliance.core.tokens import Tokens
from appliance.reservations.create import enter_by_staff
from tests.builders import TONIGHT, a_booking, table_id
from tests.clocks import box_clock
from tests.conftest import MASTER_KEY, with_settings
from tests.unit.backup.making import KEY, BoxDirectory, a_box_with_guests, a_maker
from tests.unit.backup.test_copies import Shelf

DAY = 86_400
TARGET = "sftp://box@nas.example/backups"


@pytest.fixture
def made(tmp_path):
    return a_box_with_guests(tmp_path, 5)


@pytest.fixture
def shelf(monkeypatch):
    shelf = Shelf()
    monkeypatch.setattr("appliance.backup.copies.open_target", shelf.open)
    return shelf


def book(made):
    """Enter one more reservation in live."""

    async def enter():
        box = open_box(
            made.root, MASTER_KEY, Settings(), address="https://box.example",
            clock=box_clock(made.clock), tokens=Tokens(), zones=a_maker(made).zones,
        )  # fmt: skip
        in_three_days = date.fromisoformat(TONIGHT) + timedelta(days=3)
        booking = a_booking(date=in_three_days, table_id=table_id("T1"))
        await box.live.database.write(enter_by_staff, booking, actor="staff:1")
        await box.close()

    asyncio.run(enter())


def copy(made):
    maker = a_maker(made)
    settings = with_settings(backup={"target": TARGET})
    Copier(maker.directory, settings, made.clock, maker.zones).run()


def make_one_by_a_clock_ahead(made, days=365):
    """Make a backup a year ahead, then correct the clock."""
    made.clock.advance(days * DAY)
    path, _ = a_maker(made).make()
    made.clock.advance(-days * DAY)
    return path


def latest_of(made):
    maker = a_maker(made)
    folders = [made.root / "backups"]
    path, _aside, proven, _kept = restore_latest(
        KEY, made.directory, folders, made.clock, maker.zones, lambda *_: None
    )
    return path, proven


def test_one_backup_by_a_clock_that_was_ahead_does_not_roll_the_venue_back(made):
    ahead = make_one_by_a_clock_ahead(made)
    book(made)
    right, _ = a_maker(made).make()

    path, proven = latest_of(made)

    assert (path, proven.reservations) == (right, 6)
    assert [each for each, _ in list_backups(right.parent)] == [right, ahead]


def test_a_fetch_takes_the_copy_that_was_made_last(made, shelf, tmp_path):
    for make in (make_one_by_a_clock_ahead, lambda made: a_maker(made).make()):
        make(made)
        copy(made)
    right = read_record(made.root).file

    path = fetch_latest(TARGET, with_settings().backup, made.directory, tmp_path)

    assert len(shelf.files) == 2
    assert path.name == right < max(shelf.files)


def test_a_restored_box_counts_on_from_what_its_old_box_made_after_that_backup(
    made, shelf, tmp_path
):
    first, _ = a_maker(made).make()
    for _ in range(3):
        made.clock.advance(DAY)
        a_maker(made).make()
        copy(made)
    restored = BoxDirectory(DataDirectory(tmp_path / "restored"), made.clock)
    maker = a_maker(restored)
    with open_backup(first) as file:
        restore_blank(file, KEY, restored.directory, made.clock, maker.zones, lambda *_: None)
    made.clock.advance(-2 * DAY)

    path, _ = maker.make()
    copy(restored)

    assert fetch_latest(TARGET, with_settings().backup, made.directory, tmp_path).name == path.name
    made.clock.advance(DAY)
    again, _ = maker.make()
    assert show_header(again).number == show_header(path).number + 1


@pytest.mark.parametrize("days", [365, -365], ids=["ahead", "behind"])
def test_the_backup_just_made_is_never_an_old_one(made, days):
    made.clock.advance(days * DAY)
    for _ in range(57):
        a_maker(made).make(is_frequent=True)
        made.clock.advance(DAY)
    made.clock.advance(-days * DAY)

    path, _ = a_maker(made).make()

    assert path.exists()
    assert read_record(made.root).file == path.name
    assert len(list_backups(path.parent)) < 30


def test_one_that_another_process_makes_meanwhile_deletes_none_just_made(made):
    first, proven = a_maker(made).make()
    second, _ = a_maker(made).make(to=first.parent)

    assert rotate(first, proven.header.venue_id) == []
    assert first.exists()
    assert second.exists()


def test_a_copy_just_made_stays_even_if_the_target_has_greater_numbers(made, shelf):
    for _ in range(57):
        a_maker(made).make(is_frequent=True)
        copy(made)
        made.clock.advance(DAY)
    (made.root / "last-backup.json").unlink()
    (made.root / "backups").rename(made.root / "away")
    made.clock.advance(-365 * DAY)
    path, _ = a_maker(made).make()

    copy(made)

    assert path.name in shelf.files


def test_the_numbers_go_on_without_the_record_and_without_the_folder(made):
    numbers = []
    for loss in ("nothing", "record", "folder"):
        if loss == "record":
            (made.root / "last-backup.json").unlink()
        elif loss == "folder":
            (made.root / "backups").rename(made.root / "away")
        path, _ = a_maker(made).make()
        numbers.append(show_header(path).number)
        made.clock.advance(DAY)

    assert numbers == [1, 2, 3]


def test_a_backup_of_an_older_version_has_no_number_and_is_the_older_one(made):
    path, _ = a_maker(made).make()
    magic, line, content = path.read_bytes().split(b"\n", 2)
    header = json.loads(line)
    del header["number"]
    path.write_bytes(b"\n".join([magic, json.dumps(header).encode(), content]))
    (made.root / "last-backup.json").unlink()
    made.clock.advance(-DAY)

    later, _ = a_maker(made).make()

    assert [(each, found.number) for each, found in list_backups(path.parent)] == [
        (later, 1), (path, 0)
    ]  # fmt: skip
