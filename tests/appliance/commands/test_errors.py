"""What goes wrong at the console ends with one sentence, and it says what to do."""

import pytest


def test_a_page_for_a_folder_that_is_not_there_names_it(box, tmp_path):
    said = box.complaint("backup", "kit", "--html", str(tmp_path / "no" / "kit.html"))

    assert f"{tmp_path / 'no' / 'kit.html'} is not there: correct the path" in said


def test_a_page_that_would_be_a_folder_says_so(box, tmp_path):
    assert "is a folder: name a file in it" in box.complaint(
        "backup", "kit", "--html", str(tmp_path)
    )


def test_a_page_that_others_could_read_is_closed_to_them(box, tmp_path):
    page = tmp_path / "kit.html"
    page.touch(mode=0o644)

    assert box("backup", "kit", "--html", str(page)) == 0

    assert page.stat().st_mode & 0o077 == 0


def test_a_backup_for_a_volume_that_is_not_there_names_it(box, tmp_path):
    said = box.complaint("backup", "--to", str(tmp_path / "usb"))

    assert f"{tmp_path / 'usb'} is no folder that is there: plug the volume in" in said


def test_a_backup_without_the_master_key_says_what_is_missing(box):
    (box.data / "secrets" / "master.key").unlink()

    said = box.complaint("backup")

    assert "master.key is missing: restore it from a backup" in said


def test_a_backup_of_a_missing_database_says_what_is_missing(box):
    (box.data / "test.db").unlink()

    said = box.complaint("backup")

    assert "test.db is missing" in said
    assert "venuebox restore --latest" in said


@pytest.mark.parametrize("argv", [("key", "list"), ("deliveries", "--environment", "live")])
def test_a_damaged_database_sends_to_the_doctor(box, argv):
    (box.data / "live.db").write_bytes(b"not a database" * 1000)

    assert "run venuebox doctor" in box.complaint(*argv)


def test_a_directory_without_a_box_may_be_the_wrong_one(program):
    assert "name the directory of yours with --data" in program.complaint("key", "list")


@pytest.mark.parametrize(
    "argv",
    [
        ("restore",),
        ("restore", "a.venuebox-backup", "--latest"),
        ("backup", "--html", "kit.html"),
        ("backup", "--check"),
        ("backup", "kit", "--to", "/media/usb"),
        ("replay", "--environment", "live", "--delivery", "x", "--dead"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(box, argv):
    assert "see venuebox" in box.complaint(*argv, status=2)
