"""The systemd unit: every line of hardening explained, nothing systemd complains of."""

import re
import shutil
import subprocess

import pytest

from appliance.commands.service import make_unit

ANALYZE = shutil.which("systemd-analyze")


def lines_of(unit):
    return [line for line in unit.splitlines() if line and not line.startswith(("#", "["))]


def test_the_unit_is_shown_and_nothing_is_changed(program):
    assert program("service", "install", "--user", "riad", "--print") == 0

    assert "User=riad" in program.out
    assert f"serve --data {program.data}" in program.out
    assert "{" not in program.out


@pytest.mark.proves("S25")
def test_every_part_of_the_unit_has_its_reason(tmp_path):
    """A line of settings follows a comment, or another line that the same comment is about."""
    unit = make_unit(tmp_path, "venuebox", "/usr/bin/venuebox")

    for part in re.split(r"\n\n", unit.partition("[Service]")[2].partition("[Install]")[0]):
        if part.strip():
            assert part.strip().startswith("#") or "Type=notify" in part


def test_the_service_hears_of_the_one_file_whose_child_is_the_box(tmp_path):
    """`NotifyAccess=main` would take READY and WATCHDOG from the process that waits alone."""
    assert "NotifyAccess=all" in lines_of(make_unit(tmp_path, "venuebox", "/usr/bin/venuebox"))


def test_a_box_in_somebodys_home_is_still_found(tmp_path):
    from pathlib import Path  # noqa: PLC0415

    assert "ProtectHome" in make_unit(Path("/srv/venuebox"), "v", "/usr/bin/venuebox")
    assert "ProtectHome" not in make_unit(Path("/home/riad/box"), "v", "/usr/bin/venuebox")
    assert "ProtectHome" not in make_unit(Path("/srv/venuebox"), "v", "/root/bin/venuebox")


def test_installing_without_a_box_says_to_make_one(program):
    assert "run venuebox init first" in program.complaint("service", "install")


if ANALYZE is not None:  # elsewhere the words above have to do

    @pytest.fixture
    def unit(tmp_path):
        path = tmp_path / "venuebox-box.service"
        path.write_text(make_unit(tmp_path, "root", "/usr/bin/true"), "utf-8")
        return path

    def test_systemd_finds_nothing_wrong_with_the_unit(unit):
        done = subprocess.run([ANALYZE, "verify", unit], capture_output=True, text=True,
                              check=False)  # fmt: skip

        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    @pytest.mark.proves("S25")
    def test_the_service_is_exposed_by_less_than_3(unit):
        unit.write_text(unit.read_text("utf-8").replace("User=root", "User=venuebox"), "utf-8")

        done = subprocess.run([ANALYZE, "security", "--offline=true", unit], capture_output=True,
                              text=True, check=False)  # fmt: skip

        [exposure] = re.findall(r"Overall exposure level .*: ([0-9.]+)", done.stdout)
        assert float(exposure) < 3.0
