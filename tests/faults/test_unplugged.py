"""A volume for backups that was pulled out, whose mount point stays behind as a folder (F31)."""

import json
import subprocess

import pytest

from appliance.backup.shelf import read_record
from tests.faults.small_disk import unshare
from tests.journeys.box_process import PROGRAM, clean_environ, found_box

_MOUNT = 'mount -t tmpfs -o size=64m tmpfs "$0" && exec "$@"'


def a_stick_in(folder):
    """A command prefix: what follows sees another, empty volume in the folder."""
    return (*unshare(), "sh", "-c", _MOUNT, str(folder))


def run(founded, *argv, wrapper=()):
    return subprocess.run(
        [*wrapper, PROGRAM, *argv, "--data", str(founded.data)],
        capture_output=True, text=True, check=False, env=clean_environ(),
    )  # fmt: skip


def backups_check(founded):
    found = json.loads(run(founded, "doctor", "--json").stdout)["checks"]
    return next(check for check in found if check["name"] == "backups")


if unshare() is not None:  # elsewhere nobody may have such a volume

    @pytest.fixture
    def usb(tmp_path):
        """Where the stick is mounted; `founded` keeps its backups in a folder on it."""
        (tmp_path / "usb").mkdir()
        return tmp_path / "usb"

    @pytest.fixture
    def founded(tmp_path, usb):
        made = found_box(tmp_path)
        (made.data / "settings.toml").write_text(f'[backup]\ndirectory = "{usb}"\n')
        return made

    def test_what_is_left_of_an_unplugged_volume_is_not_taken_for_it(founded, usb):
        assert run(founded, "backup", wrapper=a_stick_in(usb)).returncode == 0
        proven = read_record(founded.data)
        assert proven.volume == str(usb)

        unplugged = run(founded, "backup")

        assert unplugged.returncode == 1
        assert "the volume of" in unplugged.stderr
        assert "plug it in" in unplugged.stderr
        assert list(usb.iterdir()) == [], "the machine's own disk is not made up as the volume"
        assert read_record(founded.data).at == proven.at
        check = backups_check(founded)
        assert check["status"] == "fail"
        assert "the volume of" in check["finding"]["en"]

    def test_another_stick_in_the_same_place_is_as_good(founded, usb):
        assert run(founded, "backup", wrapper=a_stick_in(usb)).returncode == 0

        again = run(founded, "backup", wrapper=a_stick_in(usb))

        assert again.returncode == 0, again.stderr

    def test_who_names_another_folder_instead_has_backups_there(founded, usb, tmp_path):
        assert run(founded, "backup", wrapper=a_stick_in(usb)).returncode == 0
        (tmp_path / "elsewhere").mkdir()
        (founded.data / "settings.toml").write_text(
            f'[backup]\ndirectory = "{tmp_path / "elsewhere"}"\n'
        )

        again = run(founded, "backup")

        assert again.returncode == 0, again.stderr
        assert read_record(founded.data).volume != str(usb)
        check = backups_check(founded)
        assert (check["status"], "same volume" in check["finding"]["en"]) == ("warn", True)
