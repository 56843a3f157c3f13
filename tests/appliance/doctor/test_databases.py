import apsw
import pytest

from appliance.doctor import databases
from appliance.errors import Trouble


def spoil(path, offset, content):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def test_an_sqlite_that_is_too_old_is_a_failure(ward, monkeypatch):
    def refuse(_version):
        raise Trouble("SQLite 3.40.0 may corrupt data")

    monkeypatch.setattr(databases, "check_engine", refuse)

    assert ward.status("sqlite") == "fail"


@pytest.mark.parametrize("environment", ["live", "test"])
def test_a_changed_byte_in_a_page_is_found(ward, environment):
    path = ward.root / f"{environment}.db"
    spoil(path, 4096 * 3, b"\x00")  # the type of the fourth page

    found = ward.find("integrity")

    assert found.status == "fail"
    assert path.name in found.finding.en


def test_a_file_that_is_no_database_is_found(ward):
    (ward.root / "live.db").write_bytes(b"not a database" * 1000)

    assert ward.status("integrity") == "fail"


def test_a_missing_database_is_found_and_the_others_are_still_examined(ward):
    (ward.root / "test.db").unlink()

    found = ward.find("integrity")

    assert found.status == "fail"
    assert found.finding.en.startswith("test.db")
    assert ward.status("disk") == "ok"


def test_a_row_that_belongs_to_nothing_is_found(ward):
    # The box's own connections refuse it: foreign keys are off in a bare one.
    connection = apsw.Connection(str(ward.root / "live.db"))
    connection.execute("INSERT INTO history (reservation_id, at, what, actor)"
                       " VALUES ('nobody', 1, 'created', 'box')")  # fmt: skip
    connection.close()

    found = ward.find("integrity")

    assert found.status == "fail"
    assert "history" in found.finding.en


def test_a_newer_schema_is_a_failure_and_an_older_one_a_word(ward):
    ward.write("PRAGMA user_version = 999", "test")
    assert ward.status("schema") == "fail"
    assert ward.status("endpoints") is None  # rows of another schema are not asked

    ward.write("PRAGMA user_version = 0", "test")
    assert ward.status("schema") == "warn"


def test_a_log_that_is_not_folded_is_warned_of(ward):
    with (ward.root / "live.db-wal").open("ab") as file:
        file.truncate(65 << 20)

    assert databases.wal(ward.patient).status == "warn"


def test_an_old_signing_key_is_warned_of(ward):
    ward.write("UPDATE signing_key SET created_at = created_at - 367 * 86400000")

    assert ward.status("signing_key") == "warn"


def test_the_master_key_of_another_box_is_a_failure(ward):
    ward.patient.directory.master_key_file.write_bytes(bytes(32))

    assert ward.status("master_key") == "ok"
    assert ward.status("signing_key") == "fail"
