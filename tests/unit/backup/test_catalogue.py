"""The order of backups, and which ones are kept, according to their names alone."""

from datetime import UTC, datetime, timedelta

import pytest

from appliance.backup.archive import open_backup
from appliance.backup.catalogue import (
    choose_old,
    find_catalogue,
    list_backups,
    make_name,
    parse_name,
    read_record,
    sort_names,
)
from appliance.backup.restore import restore_blank, restore_latest
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.i18n import load_languages
from tests.conftest import with_settings
from tests.unit.backup.making import KEY, BoxDirectory, a_box_with_guests, a_maker

DAY = 86_400
NOW = datetime(2026, 11, 21, 4, tzinfo=UTC)


def named(number, ago, venue="v-1", slug="riad"):
    """Return the name of a backup made `ago` before NOW."""
    return make_name(slug, number, round((NOW - ago).timestamp() * 1000), venue)


def every(minutes, count):
    """Return the names of backups made at this interval, latest first."""
    return [named(count - index, timedelta(minutes=minutes * index)) for index in range(count)]


def kept_of(names):
    old = set(choose_old(names, names[0]))
    return [name for name in names if name not in old]


def test_after_a_hundred_nights_14_daily_and_8_weekly_backups_are_left():
    nights = every(24 * 60, 100)

    kept = kept_of(nights)

    made = [datetime.fromisoformat(parse_name(name).made) for name in kept]
    assert kept[:14] == nights[:14]
    assert len({each.isocalendar()[:2] for each in made}) >= 8
    assert len(kept) <= 24 + 8


def test_the_last_backup_of_each_hour_and_of_each_day_is_kept():
    minutes = every(5, 10 * 24 * 12)

    kept = [datetime.fromisoformat(parse_name(name).made) for name in kept_of(minutes)]

    assert len({each.date() for each in kept}) == 11
    assert (
        len({(each.date(), each.hour) for each in kept if kept[0] - each < timedelta(days=1)}) == 24
    )
    assert len(kept) < 45


def test_a_box_that_was_off_for_a_year_keeps_its_old_backups():
    assert len(kept_of([named(9, timedelta()), *every(24 * 60 * 400, 5)[1:]])) == 5


@pytest.mark.parametrize("days", [365, -365])
def test_the_newest_backup_is_kept_even_if_its_name_has_an_old_time_or_number(days):
    made = named(1, timedelta(days=days))
    names = [made, *every(24 * 60, 57)]

    assert made not in choose_old(names, made)
    assert len(choose_old(names, made)) > 20


def test_backups_of_other_venues_and_other_files_are_never_deleted():
    other = [named(index, timedelta(days=index), venue="v-2") for index in range(100)]
    names = [*every(24 * 60, 100), *other, "photo.jpg", "riad-1.tar.age"]

    old = choose_old(names, names[0])

    assert not {*other, "photo.jpg", "riad-1.tar.age"} & set(old)


def test_changing_the_slug_does_not_orphan_the_earlier_backups():
    nights = every(24 * 60, 50)
    renamed = named(51, timedelta(days=-1), slug="dar")

    assert sort_names([*nights, renamed])[0].name == renamed
    assert choose_old([*nights, renamed], renamed)


@pytest.mark.parametrize(
    "name",
    ["", "riad.tar.age", "../riad-000001-2026-11-21T040000Z-abcdef.tar.age",
     "riad-000001-2026-13-21T040000Z-abcdef.tar.age", "riad-000001-2026-11-21T040000Z-abcdef.tar"],
)  # fmt: skip
def test_files_with_other_names_are_not_listed_as_backups(name):
    assert parse_name(name) is None


@pytest.fixture
def made(tmp_path):
    return a_box_with_guests(tmp_path, 5)


def test_a_backup_made_while_the_clock_was_ahead_does_not_stay_the_latest_for_ever(made):
    made.clock.advance(365 * DAY)
    ahead, _ = a_maker(made).make()
    made.clock.advance(-365 * DAY)
    right, _ = a_maker(made).make()

    folders, zones = [made.root / "backups"], a_maker(made).zones
    restored = restore_latest(KEY, made.directory, folders, made.clock, zones, lambda *_: None)

    assert restored[0] == right
    assert list_backups(right.parent) == [right, ahead]


def test_backup_numbers_continue_even_if_the_record_and_the_folder_are_lost(made):
    numbers = []
    for loss in ("nothing", "record", "folder"):
        if loss == "record":
            (made.root / "last-backup.json").unlink()
        elif loss == "folder":
            (made.root / "backups").rename(made.root / "away")
        numbers.append(a_maker(made).make()[1].number)

    assert numbers == [1, 2, 3]


def test_a_restored_box_never_reuses_a_backup_number_of_the_old_box(made, tmp_path):
    first, _ = a_maker(made).make()
    later, _ = a_maker(made).make()
    restored = BoxDirectory(DataDirectory(tmp_path / "restored"), made.clock)
    maker = a_maker(restored)
    with open_backup(first) as file:
        restore_blank(file, KEY, restored.directory, made.clock, maker.zones, lambda *_: None)

    path, _ = maker.make()

    assert sort_names([later.name, path.name])[0].name == path.name


def test_the_backup_folder_of_an_unplugged_volume_is_not_created(made, tmp_path):
    a_maker(made).make()
    settings = with_settings(backup={"directory": str(tmp_path / "usb")})

    with pytest.raises(OperatorError, match="Plug it in"):
        find_catalogue(made.directory, settings)
    with pytest.raises(OperatorError, match="Plug it in"):
        a_maker(made, settings=settings).make()

    assert not (tmp_path / "usb").exists()
    assert read_record(made.root).at is not None, "the proof before still counts"
    trouble = read_record(made.root).trouble
    assert load_languages().get("fr").gettext(trouble) != trouble
