"""The systemd unit: every hardening line has a reason, and systemd reports no problem."""

import contextlib
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from appliance import program
from appliance.commands import service
from appliance.commands.service import make_unit, make_update_units, takes_requests
from appliance.core.data_directory import DataDirectory
from tests.unit.commands.open_folders import let_everybody_enter

ANALYZE = shutil.which("systemd-analyze")


def test_printing_the_unit_changes_nothing(program):
    assert program("service", "install", "--user", "riad", "--print") == 0

    assert "User=riad" in program.out
    assert f"serve --data {program.data}" in program.out
    assert "{" not in program.out


@pytest.mark.process
@pytest.mark.parametrize(("status", "waits"), [("0", ""), ("1", "10\n"), ("KILL", "")])
def test_the_service_waits_before_a_restart_only_if_the_start_failed(tmp_path, status, waits):
    """A killed box restarts immediately."""
    sleep, asked = tmp_path / "sleep", tmp_path / "asked"
    sleep.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    sleep.chmod(0o755)
    asked.touch()
    unit = make_unit(tmp_path, "venuebox", "/usr/bin/venuebox")
    [line] = re.findall("^ExecStopPost=(.*)$", unit, re.MULTILINE)

    subprocess.run(shlex.split(line.replace("$$", "$")), check=True,
                   env={"PATH": str(tmp_path), "EXIT_STATUS": status})  # fmt: skip

    assert asked.read_text() == waits


@pytest.mark.parametrize(
    ("data", "program", "backups", "are_hidden"),
    [("/srv/box", "/usr/bin/venuebox", "/media/usb", True), ("/srv/box", "/bin/venuebox", "", True),
     ("{home}/box", "/usr/bin/venuebox", "", False), ("/srv/box", "{home}/venuebox", "", False),
     ("/srv/box", "/usr/bin/venuebox", "{home}/backups", False)],
)  # fmt: skip
@pytest.mark.parametrize("home", ["/home", "/root", "/run/user"])
def test_home_directories_are_hidden_unless_the_box_needs_one(
    home, data, program, backups, are_hidden
):
    data, program, backups = (path.format(home=home) for path in (data, program, backups))
    unit = make_unit(Path(data), "venuebox", program, backups)

    assert ("ProtectHome=yes" in unit) == are_hidden


if ANALYZE is not None:  # only if systemd-analyze is installed

    @pytest.fixture
    def unit(tmp_path):
        path = tmp_path / "venuebox-box.service"
        path.write_text(make_unit(tmp_path, "root", "/usr/bin/true"), "utf-8")
        return path

    @pytest.mark.process
    @pytest.mark.parametrize(
        "name",
        ["50 % box", "L'Étoile", 'the "box"', "both'\"", "a\\b", "C$HOME${x}", "a; b", "-", "@x #"],
    )
    def test_systemd_accepts_the_units_with_any_folder_names(tmp_path, name):
        program = "/usr/bin/true"  # systemd itself forbids quotes in a program's path
        unit = make_unit(tmp_path / name, "root", program, f"/media/{name}")
        units = {"venuebox-box.service": unit} | make_update_units(tmp_path / name, program)
        for file, text in units.items():
            (tmp_path / file).write_text(text, "utf-8")

        paths = [tmp_path / file for file in units]
        done = subprocess.run([ANALYZE, "verify", *paths], capture_output=True, text=True,
                              check=False)  # fmt: skip

        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    @pytest.mark.process
    def test_systemd_rates_the_exposure_of_the_service_below_3(unit):
        unit.write_text(unit.read_text("utf-8").replace("User=root", "User=venuebox"), "utf-8")

        done = subprocess.run([ANALYZE, "security", "--offline=true", unit], capture_output=True,
                              text=True, check=False)  # fmt: skip

        [exposure] = re.findall(r"Overall exposure level .*: ([0-9.]+)", done.stdout)
        assert float(exposure) < 3.0


SYSTEMCTL = """#!/bin/sh
echo "$@" >> {calls}
test "$1" != is-active
"""


def test_the_service_may_write_to_the_backup_folder(box):
    (box.data / "settings.toml").write_text('[backup]\ndirectory = "/media/the usb"\n')

    assert box("service", "install", "--print") == 0

    assert "\nReadWritePaths=-/media/the\\x20usb\n" in box.out


def test_a_backup_folder_that_links_into_a_system_directory_is_refused(box, tmp_path):
    (tmp_path / "usb").symlink_to("/etc")
    (box.data / "settings.toml").write_text(f'[backup]\ndirectory = "{tmp_path}/usb"\n')

    assert "/etc" in box.complaint("service", "install", "--print")


def test_installing_without_root_fails_before_the_settings_are_read(box, monkeypatch):
    (box.data / "settings.toml").write_text("not read")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert "sudo" in box.complaint("service", "install")


if os.geteuid() == 0:  # root alone installs a service

    @pytest.fixture
    def installing(box, tmp_path, monkeypatch):
        """Run `service install` for the user `nobody`. The calls of systemctl go to a file."""
        programs = tmp_path / "bin"
        programs.mkdir()
        script = programs / "systemctl"
        script.write_text(SYSTEMCTL.format(calls=tmp_path / "calls"))
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        monkeypatch.setattr(service, "UNIT", tmp_path / "venuebox.service")
        monkeypatch.setattr(service, "BOOTED", tmp_path)
        monkeypatch.setattr(service, "find_program", lambda: shutil.which("true"))
        monkeypatch.setattr(sys, "executable", "/bin/sh")
        let_everybody_enter(tmp_path)
        return lambda: box("service", "install", "--user", "nobody")

    @pytest.fixture
    def as_one_file(tmp_path, monkeypatch):
        """Simulate the single-file program in `service install`. Return the folder it unpacks."""
        place, folder = tmp_path / "opt", tmp_path / "opt" / "1.0"
        folder.mkdir(parents=True)
        shutil.copy("/bin/true", folder / "venuebox")
        monkeypatch.setattr(service, "is_built", lambda: True)
        monkeypatch.setattr(service, "unpack", lambda _version: folder)
        monkeypatch.setattr(service, "switch", lambda new: program.switch(new, place))
        monkeypatch.setattr(program, "PLACE", place)
        monkeypatch.setattr(program, "COMMAND", tmp_path / "sbin" / "venuebox")
        return folder

    @pytest.mark.process
    def test_the_single_file_program_is_installed_so_that_it_can_update_itself(
        installing, box, tmp_path, as_one_file
    ):
        (tmp_path / "sbin").mkdir()
        (tmp_path / "sbin" / "venuebox").write_text("an older one")

        assert installing() == 0, box.err

        assert (tmp_path / "opt" / "current").resolve() == as_one_file
        assert (tmp_path / "sbin" / "venuebox").is_symlink()
        calls = (tmp_path / "calls").read_text().splitlines()
        assert calls[-5:] == [
            "daemon-reload",
            "enable venuebox-update.path",
            "restart venuebox-update.path",
            "enable venuebox.service",
            "restart venuebox.service",
        ]
        assert takes_requests(box.data)
        assert not takes_requests(tmp_path)
        assert service.runs_program(tmp_path / "opt")

    @pytest.mark.process
    @pytest.mark.parametrize("is_linked", [False, True])
    def test_install_writes_the_unit_changes_the_owner_and_restarts_the_service(
        installing, box, tmp_path, is_linked
    ):
        """Run from the sources. Root must not run updates of a program that others can change."""
        real = box.data
        if is_linked:
            real = box.data.rename(tmp_path / "real")
            box.data.symlink_to(real)

        assert installing() == 0, box.err

        calls = (tmp_path / "calls").read_text().splitlines()
        assert calls[-3:] == [
            "daemon-reload", "enable venuebox.service", "restart venuebox.service",
        ]  # fmt: skip
        assert "User=nobody" in (tmp_path / "venuebox.service").read_text()
        assert not takes_requests(box.data)
        nobody = pwd.getpwnam("nobody").pw_uid
        assert {path.stat().st_uid for path in (real, *real.rglob("*"))} == {nobody}

    @pytest.mark.process
    @pytest.mark.parametrize("hindrance", ["unreachable", "no systemd", "running"])
    def test_an_obstacle_to_the_service_is_reported_before_anything_is_changed(
        installing, box, tmp_path, monkeypatch, hindrance
    ):
        closed = tmp_path / "home"
        closed.mkdir(mode=0o700)
        (closed / "venuebox").touch(mode=0o755)
        if hindrance == "unreachable":
            monkeypatch.setattr(service, "find_program", lambda: str(closed / "venuebox"))
        elif hindrance == "no systemd":  # systemd is installed but not running, as in a container
            monkeypatch.setattr(service, "BOOTED", tmp_path / "not there")

        with contextlib.ExitStack() as stack:
            if hindrance == "running":
                stack.enter_context(DataDirectory(box.data).lock())
            assert installing() == 1

        assert (str(closed / "venuebox") in box.err) == (hindrance == "unreachable")
        assert not (tmp_path / "venuebox.service").exists()
        assert box.data.stat().st_uid == 0

    @pytest.mark.process
    def test_a_backup_folder_that_the_user_cannot_write_to_is_reported(installing, box, tmp_path):
        usb = tmp_path / "usb"
        usb.mkdir(mode=0o755)
        (box.data / "settings.toml").write_text(f'[backup]\ndirectory = "{usb}"\n')

        assert installing() == 0

        assert str(usb) in box.err
        shutil.chown(usb, "nobody")
        assert installing() == 0
        assert str(usb) not in box.err

    @pytest.mark.process
    def test_installing_refuses_settings_that_only_root_can_read(installing, box, tmp_path):
        roots = tmp_path / "roots"
        roots.write_text('[backup]\ndirectory = "/media/usb"\n')
        roots.chmod(0o600)
        (box.data / "settings.toml").unlink()
        (box.data / "settings.toml").symlink_to(roots)
        shutil.chown(box.data, "nobody")

        assert installing() == 1

        assert not (tmp_path / "venuebox.service").exists()

    @pytest.mark.process
    def test_changing_the_owner_does_not_follow_symbolic_links(installing, box, tmp_path):
        folder, file = tmp_path / "elsewhere", tmp_path / "file"
        folder.mkdir()
        file.touch()
        links = [box.data / "to-a-folder", box.data / "to-a-file", box.data / "to-nothing"]
        for link, target in zip(links, (folder, file, tmp_path / "gone"), strict=True):
            link.symlink_to(target)

        assert installing() == 0, box.err

        nobody = pwd.getpwnam("nobody").pw_uid
        assert [link.lstat().st_uid for link in links] == [nobody] * 3
        assert (folder.stat().st_uid, file.stat().st_uid) == (0, 0)
