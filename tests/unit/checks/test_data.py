"""The checks of the stored data: databases, keys, files, backups."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from appliance.backup.catalogue import read_record, write_record
from appliance.backup.copies import CopyRecord
from appliance.backup.create import _NO_ROOM
from appliance.checks import data
from appliance.core.i18n import load_languages
from tests.unit.checks.conftest import english


def spoil(path):
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\x00")  # the type of the fourth page


def orphan_a_row(path):
    """Insert a row with a missing parent, over a connection without foreign keys."""
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO history (reservation_id, at, what, actor)"
                       " VALUES ('nobody', 1, 'created', 'box')")  # fmt: skip
    connection.close()


@pytest.mark.parametrize("environment", ["live", "test"])
@pytest.mark.parametrize("harm", [spoil, Path.unlink, orphan_a_row])
def test_a_damaged_database_is_reported_and_the_other_checks_still_run(ward, environment, harm):
    harm(ward.root / f"{environment}.db")

    assert ward.status("integrity") == "fail"
    assert ward.status("disk") == "ok"


def test_a_newer_schema_is_a_failure_and_an_older_one_a_warning(ward):
    ward.write("PRAGMA user_version = 999", "test")
    assert ward.status("schema") == "fail"
    assert ward.status("endpoints") is None  # rows of another schema are not read

    ward.write("PRAGMA user_version = 0", "test")
    assert ward.status("schema") == "warn"


def test_an_old_signing_key_is_a_warning(ward):
    ward.write("UPDATE signing_key SET created_at = created_at - 367 * 86400000")

    assert ward.status("signing_key") == "warn"


def test_the_master_key_of_another_box_is_a_failure(ward):
    ward.context.directory.master_key_file.write_bytes(bytes(32))

    assert ward.status("master_key") == "ok"
    assert ward.status("signing_key") == "fail"


@pytest.mark.parametrize("name", ["secrets/master.key", "live.db", "settings.toml", "secrets", "."])
def test_a_file_or_folder_that_other_users_can_read_is_named(ward, name):
    path = ward.root / name
    path.chmod(0o755 if path.is_dir() else 0o644)

    found = ward.find("permissions")
    assert found.status == "fail"
    assert name in english(found)


def test_a_file_owned_by_another_user_is_named(ward, monkeypatch):
    stranger = SimpleNamespace(st_uid=ward.root.stat().st_uid + 1, st_mode=0o600)
    monkeypatch.setattr(data, "_walk", lambda _: [(ward.root / "live.db", stranger)])

    found = ward.find("permissions")

    assert found.status == "fail"
    assert "live.db" in english(found)


@pytest.mark.parametrize("harm", ["missing", "short", 0o640, 0o604, 0o660])
def test_an_unusable_master_key_is_a_failure(ward, harm):
    path: Path = ward.context.directory.master_key_file
    if harm == "missing":
        path.unlink()
    elif harm == "short":
        path.write_bytes(b"short")
    else:
        path.chmod(harm)

    assert ward.status("master_key") == "fail"
    assert ward.status("signing_key") is None  # there is no key to decrypt it with


def test_a_failed_backup_is_reported_with_its_reason_even_if_an_earlier_one_is_recent(ward):
    assert ward.status("backups") == "ok"
    write_record(ward.root, replace(read_record(ward.root), trouble="the stick is full"))

    found = ward.find("backups")

    assert found.status == "warn"
    assert "the stick is full" in english(found)


def test_the_reason_of_a_failed_backup_is_translated(ward):
    write_record(ward.root, replace(read_record(ward.root), trouble=_NO_ROOM))

    french = ward.find("backups").finding.text(load_languages().get("fr"))

    assert french.endswith("dans le dossier de données.).")


def test_backups_on_the_same_volume_as_the_box_are_a_warning(ward, tmp_path):
    ward.on(device=lambda _: 1)
    assert ward.status("backups") == "warn"

    (tmp_path / "usb").mkdir()
    ward.set(backup={"directory": str(tmp_path / "usb")})
    assert ward.status("backups") == "warn"

    ward.on(device=lambda path: 2 if path == tmp_path / "usb" else 1)
    assert ward.status("backups") == "ok"


@pytest.mark.parametrize(
    ("record", "status"),
    [
        (CopyRecord(), "warn"),
        (CopyRecord("s3://other", "a", at=1), "warn"),
        (CopyRecord("s3://bucket", trouble="refused"), "warn"),
        (CopyRecord("s3://bucket", "a", at=1, proven_at=1), "ok"),
        (CopyRecord("s3://bucket", "a", at=1, failing_since=1, trouble="refused"), "fail"),
    ],
)
def test_failing_copies_are_a_warning_and_after_a_week_a_failure(ward, record, status):
    assert ward.status("backup_target") is None
    ward.set(backup={"target": "s3://bucket", "target_secret": "planted"})
    file = ward.root / "last-copy.json"
    file.write_text(json.dumps(asdict(record)))

    assert ward.status("backup_target") == status
    assert "planted" not in repr(ward.examine())

    if status == "fail":
        now = ward.context.clock.now()
        file.write_text(json.dumps(asdict(replace(record, failing_since=now))))
        assert ward.status("backup_target") == "warn"


def test_a_missing_backup_folder_is_a_failure(ward, tmp_path):
    ward.set(backup={"directory": str(tmp_path / "usb")})

    assert ward.status("backups") == "fail"
    french = ward.find("backups").finding.text(load_languages().get("fr"))
    assert french.endswith(f"{tmp_path / 'usb'} ou son disque est introuvable.")
