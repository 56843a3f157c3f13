from pathlib import Path
from types import SimpleNamespace

import pytest

from appliance.doctor import files
from appliance.doctor.files import fix_permissions
from appliance.upkeep.erasure_list import LIST, append_to_list


@pytest.mark.proves("S25", "V13")
@pytest.mark.parametrize("name", ["secrets/master.key", "live.db", "settings.toml", "secrets", "."])
def test_a_file_or_folder_that_others_can_read_is_named_and_mended(ward, name):
    path = ward.root / name
    path.chmod(0o755 if path.is_dir() else 0o644)

    found = ward.find("permissions")
    assert found.status == "fail"
    assert name in found.finding.en

    assert path in fix_permissions(ward.patient.directory)
    assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)
    assert ward.status("permissions") == "ok"


def test_a_file_of_somebody_else_is_named(ward, monkeypatch):
    stranger = SimpleNamespace(st_uid=ward.root.stat().st_uid + 1, st_mode=0o600)
    monkeypatch.setattr(files, "_walk", lambda _: [(ward.root / "live.db", stranger)])

    found = ward.find("permissions")

    assert found.status == "fail"
    assert "live.db" in found.finding.en
    assert "chown" in found.remedy.en


def test_many_open_files_are_told_in_one_sentence(ward):
    for n in range(50):
        path = ward.root / "backups" / f"file-{n}"
        path.write_text("x")
        path.chmod(0o644)

    finding = ward.find("permissions").finding.en

    assert finding.count("file-") == 5
    assert "(+45)" in finding


def test_a_link_is_not_followed_out_of_the_directory(ward, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("x")
    outside.chmod(0o644)
    (ward.root / "backups" / "link").symlink_to(outside)

    assert ward.status("permissions") == "ok"
    assert fix_permissions(ward.patient.directory) == []
    assert outside.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("harm", ["missing", "short", "open"])
def test_a_master_key_that_cannot_be_used_is_a_failure(ward, harm):
    path: Path = ward.patient.directory.master_key_file
    if harm == "missing":
        path.unlink()
    elif harm == "short":
        path.write_bytes(b"short")
    else:
        path.chmod(0o644)

    assert ward.status("master_key") == "fail"
    assert ward.status("signing_key") is None  # there is nothing to open it with


def test_what_a_power_cut_left_half_written_is_named(ward):
    (ward.root / ".address.4711").write_bytes(b"htt")

    assert ward.status("leftovers") == "warn"


def test_lines_of_the_list_of_erasures_that_cannot_be_read_are_named(ward):
    assert ward.status("erasures") is None, "nobody was erased yet"
    append_to_list(ward.root, "live", {"a": 0})
    assert ward.status("erasures") == "ok"

    (ward.root / LIST).write_bytes(b'"x"\n' + (ward.root / LIST).read_bytes() + b"\xff\n")

    found = ward.find("erasures")
    assert found.status == "warn"
    assert "erasures.jsonl cannot be read: 1, 4." in found.finding.en


def test_a_list_of_erasures_that_cannot_be_opened_is_a_failure(ward):
    (ward.root / LIST).mkdir(mode=0o700)

    found = ward.find("erasures")

    assert found.status == "fail"
    assert LIST in found.finding.en


def test_a_lost_master_key_is_copied_from_a_backup_and_no_rights_are_to_blame(ward):
    (ward.root / "secrets" / "master.key").unlink()

    found = ward.find("master_key")

    assert found.status == "fail"
    assert "to another directory and copy secrets/master.key" in found.remedy.en
    assert "--fix" not in found.remedy.en
