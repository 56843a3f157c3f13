"""What the doctor says of backups: whether they outlive the disk of the box."""


def test_backups_on_the_volume_of_the_box_are_worth_a_word_where_another_was_wanted(ward, tmp_path):
    (tmp_path / "usb").mkdir()
    ward.set(backup={"directory": str(tmp_path / "usb")})

    ward.on(device=lambda _: 1)
    found = ward.find("backups")
    assert found.status == "warn"
    assert f"{tmp_path / 'usb'}, on the same volume as the box" in found.finding.en

    ward.on(device=lambda path: 2 if path == tmp_path / "usb" else 1)
    assert ward.status("backups") == "ok"


def test_a_box_that_keeps_its_backups_itself_was_told_what_that_is_worth(ward):
    ward.on(device=lambda _: 1)

    assert ward.status("backups") == "ok"


def test_a_folder_that_is_not_there_is_a_failure(ward, tmp_path):
    ward.set(backup={"directory": str(tmp_path / "usb")})

    found = ward.find("backups")

    assert found.status == "fail"
    assert "plug the volume in" in found.finding.en
