import stat

import pytest

from appliance.clock import SystemClock, newest_zone_database
from appliance.data_directory import DataDirectory
from appliance.store.connection import Reader, open_connection
from appliance.store.signing_keys import get_signing_key
from appliance.store.venue import get_venue, list_tables
from appliance.tokens import Keyring


def reader(program, environment):
    connection = open_connection(program.data / f"{environment}.db", writable=False)
    return Reader(connection, SystemClock(), newest_zone_database())


def test_a_box_has_one_venue_in_two_environments_each_with_a_pass_key_of_its_own(box):
    live, test = reader(box, "live"), reader(box, "test")
    master = DataDirectory(box.data).master_key()

    assert get_venue(live) == get_venue(test)
    assert [table.number for table in list_tables(test)] == ["T1", "T2"]
    keys = {
        get_signing_key(live, Keyring(master, "live"))[1].public_key().public_bytes_raw(),
        get_signing_key(test, Keyring(master, "test"))[1].public_key().public_bytes_raw(),
    }
    assert len(keys) == 2


@pytest.mark.proves("S25")
def test_no_file_of_a_new_box_is_readable_by_others(box):
    for path in [box.data, *box.data.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_directory_that_holds_a_box_is_refused_and_untouched(box, venue_file):
    before = (box.data / "live.db").read_bytes()

    assert "already holds a box" in box.complaint("init", "--venue", str(venue_file))

    assert (box.data / "live.db").read_bytes() == before


def test_a_bad_venue_file_makes_no_directory(program, venue_file):
    venue_file.write_text('name = "x"')

    assert "slug is missing" in program.complaint("init", "--venue", str(venue_file))

    assert not program.data.exists()


def test_a_venue_file_that_is_not_there_is_one_sentence(program, tmp_path):
    missing = str(tmp_path / "none.toml")

    assert "No such file" in program.complaint("init", "--venue", missing)


def test_settings_that_were_put_there_before_are_kept(program, venue_file):
    program.data.mkdir()
    (program.data / "settings.toml").write_text("[server]\nport = 9\n")

    assert program("init", "--venue", str(venue_file)) == 0

    assert "port = 9" in (program.data / "settings.toml").read_text()
