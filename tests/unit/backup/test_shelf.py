"""Which backups are kept: 14 days and 8 weeks, of this venue alone, never by age."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from appliance.backup.catalogue import choose_old, find_catalogue, list_backups, read_record, rotate
from appliance.clock import parse_instant
from appliance.core.errors import OperatorError
from appliance.core.i18n import load_languages
from tests.conftest import with_settings
from tests.unit.backup.making import a_box_with_guests, a_maker


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    box = a_box_with_guests(tmp_path_factory.mktemp("shelf"))
    return box, a_maker(box).make()


def a_row(made, days, hour=4):
    """A backup of so many days ago, which need not exist."""
    _, (path, proven) = made
    at = datetime(2026, 11, 21, hour, tzinfo=UTC) - timedelta(days=days)
    name = f"riad-{days}-{hour}"
    return path.with_name(name), replace(proven.header, made_at=f"{at:%Y-%m-%dT%H:%M:%S}.000Z")


def test_a_hundred_nights_leave_14_days_and_8_weeks(made):
    nights = [a_row(made, days) for days in range(100)]

    kept = {path.name for path, _ in nights} - {path.name for path in choose_old(nights)}

    assert {f"riad-{days}-4" for days in range(14)} <= kept
    weeks = {(datetime(2026, 11, 21, tzinfo=UTC) - timedelta(days=days)).isocalendar()[:2]
             for days in (int(name.split("-")[1]) for name in kept)}  # fmt: skip
    assert len(weeks) == 8
    assert len(kept) == 14 + 8 - 3, "three of the weeks are those of the 14 days"


def test_of_a_day_before_the_last_stays(made):
    rows = [a_row(made, 0), a_row(made, 2, 20), a_row(made, 2, 4)]

    assert [path.name for path in choose_old(rows)] == ["riad-2-4"]


def test_a_week_of_quarter_hours_leaves_an_hour_of_them_24_hours_and_the_days(made):
    quarters = [a_row(made, number / 96) for number in range(7 * 96)]
    at = {path: parse_instant(header.made_at) for path, header in quarters}

    gone = set(choose_old(quarters))

    ages = [(at[quarters[0][0]] - at[path]) / 60_000 for path, _ in quarters if path not in gone]
    assert [age for age in ages if age < 60] == [0, 15, 30, 45]
    assert [age for age in ages if 60 <= age < 1440] == [60 * hour + 15 for hour in range(1, 23)]
    assert len([age for age in ages if age >= 1440]) == 6


def test_the_last_backup_before_an_upgrade_outlives_the_night_after_it(made):
    def before(row):
        path, header = row
        return path, replace(header, schema=header.schema - 1)

    rows = [a_row(made, 0, 4), before(a_row(made, 0, 2)), before(a_row(made, 0, 1))]

    assert [path.name for path in choose_old(rows)] == []

    rows = [a_row(made, 2, 4), before(a_row(made, 2, 2)), before(a_row(made, 2, 1))]
    rows.insert(0, a_row(made, 0))

    assert [path.name for path in choose_old(rows)] == ["riad-2-1"]


def test_the_last_backup_before_a_restore_stays(made):
    def by(box, row):
        path, header = row
        return path, replace(header, number=box * 10_000_000 + 1)

    rows = [by(1, a_row(made, 0, 20)), by(0, a_row(made, 0, 5)), by(0, a_row(made, 0, 4))]
    rows.insert(0, by(1, a_row(made, -2)))

    assert [path.name for path in choose_old(rows)] == ["riad-0-4"]


def test_a_box_that_was_off_for_a_year_keeps_what_it_had(made):
    rows = [a_row(made, 0), *(a_row(made, 365 + days) for days in range(5))]

    assert choose_old(rows) == []


def test_by_a_clock_that_was_ahead_as_many_are_kept_as_by_a_right_one(made):
    def ahead(row):
        path, header = row
        return path, replace(header, made_at=header.made_at.replace("2026", "2028"))

    quarters = [ahead(a_row(made, number / 96)) for number in range(96)]
    now = a_row(made, 0)

    kept = {path for path, _ in [now, *quarters]} - set(choose_old([now, *quarters]))

    assert now[0] in kept
    assert len(kept) == 3, "the last of each of the two days before it"


def test_backups_of_another_venue_are_never_deleted(made):
    _box, (path, proven) = made

    assert rotate(path, "another venue") == []
    assert [each for each, _ in list_backups(path.parent, proven.header.venue_id)] == [path]
    assert list_backups(path.parent, "another venue") == []


def test_an_unplugged_volume_is_no_folder_to_make(made, tmp_path):
    box, _ = made
    settings = with_settings(backup={"directory": str(tmp_path / "usb")})

    with pytest.raises(OperatorError, match="Plug it in"):
        find_catalogue(box.directory, settings)
    with pytest.raises(OperatorError, match="Plug it in"):
        a_maker(box, settings=settings).make()

    assert not (tmp_path / "usb").exists()
    assert read_record(box.root).at is not None, "the proof before still counts"
    trouble = read_record(box.root).trouble
    assert "Plug it in" in trouble
    assert "Branchez-le" in load_languages().get("fr").gettext(trouble)
