"""`venuebox init` and `venuebox venue apply`."""

import stat
from datetime import timedelta

import pytest

from appliance.core.data_directory import DataDirectory
from appliance.core.tokens import Keyring
from appliance.door.guest_pass import get_signing_key
from appliance.reservations.create import enter_by_staff
from appliance.venue.model import find_tonight, get_venue, list_slots, list_tables
from tests.builders import a_booking
from tests.unit.commands.conftest import VENUE

LATE = VENUE.replace('"19:30"', '"01:00"').replace('"22:00"', '"03:00"')


@pytest.mark.parametrize("environment", ["live", "test"])
def test_an_evening_end_that_would_cut_a_booked_slot_is_refused_in_both_environments(
    box, venue_file, environment
):
    venue_file.write_text(LATE, "utf-8")
    assert box("venue", "apply", str(venue_file)) == 0
    with box.transaction(environment) as tx:
        day = find_tonight(tx) + timedelta(days=7)
        booking = a_booking(table_id=list_tables(tx)[0].id, date=day, slot="01:00")
        enter_by_staff(tx, booking, actor="staff:x")
    earlier = 'evening_ends_at = "00:30"\n' + LATE.replace("Riad Atlas", "Riad Toubkal")
    venue_file.write_text(earlier, "utf-8")

    assert "across midnight" in box.complaint("venue", "apply", str(venue_file))

    for each in ("live", "test"):
        with box.transaction(each) as tx:
            venue = get_venue(tx)
            assert (venue.name, venue.evening_ends_at) == ("Riad Atlas", "06:00")


def test_an_evening_end_that_cuts_an_unbooked_slot_is_applied(box, venue_file):
    venue_file.write_text('evening_ends_at = "00:30"\n' + LATE, "utf-8")

    assert box("venue", "apply", str(venue_file)) == 0

    with box.transaction("live") as tx:
        assert get_venue(tx).evening_ends_at == "00:30"


def test_applying_a_venue_file_matches_tables_by_number_in_both_environments(box, venue_file):
    with box.transaction() as tx:
        before = {table.number: table.id for table in list_tables(tx)}
        slot_id = list_slots(tx)[0].id
    text = VENUE.replace('"T2"', '"T3"').replace("Terrasse 1", "Le Belvédère")
    venue_file.write_text(text.replace("Riad Atlas", "Riad Toubkal"), "utf-8")

    assert box("venue", "apply", str(venue_file)) == 0, box.err

    for environment in ("live", "test"):
        with box.transaction(environment) as tx:
            assert get_venue(tx).name == "Riad Toubkal"
            shown = [(table.number, table.name, table.bookable) for table in list_tables(tx)]
        assert shown == [("T1", "Le Belvédère", True), ("T3", "T3", True), ("T2", "T2", False)]
    with box.transaction() as tx:
        after = {table.number: table.id for table in list_tables(tx)}
        assert list_slots(tx)[0].id == slot_id
    assert {number: after[number] for number in before} == before


def test_a_box_has_one_venue_in_two_environments_with_separate_pass_keys(box):
    master, venues, keys = DataDirectory(box.data).master_key(), [], set()
    for name in ("live", "test"):
        with box.transaction(name) as tx:
            venues.append(get_venue(tx))
            assert [table.number for table in list_tables(tx)] == ["T1", "T2"]
            key = get_signing_key(tx, Keyring(master, name))[1]
            keys.add(key.public_key().public_bytes_raw())

    assert venues[0] == venues[1]
    assert len(keys) == 2


def test_the_files_of_a_new_box_are_not_readable_by_other_users(box):
    for path in [box.data, *box.data.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_directory_that_already_contains_a_box_is_refused_and_unchanged(box, venue_file):
    before = {path: path.read_bytes() for path in box.data.rglob("*") if path.is_file()}

    box.complaint("init", "--venue", str(venue_file))
    assert {path: path.read_bytes() for path in before} == before
    (box.data / "secrets" / "master.key").unlink()
    box.complaint("init", "--venue", str(venue_file))
    assert not (box.data / "secrets" / "master.key").exists()


def test_init_keeps_an_existing_settings_file(program, venue_file):
    program.data.mkdir()
    (program.data / "settings.toml").write_text("[server]\nport = 9\n")

    assert program("init", "--venue", str(venue_file)) == 0

    assert "port = 9" in (program.data / "settings.toml").read_text()
