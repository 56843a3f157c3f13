import os
import stat
import subprocess
import sys

import pytest

from appliance.core import data_directory
from appliance.core.data_directory import DataDirectory, choose_data_directory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder
from appliance.core.tokens import Tokens

HOLDER = """
import sys, time
from pathlib import Path
from appliance.core.data_directory import DataDirectory
with DataDirectory(Path(sys.argv[1])).lock():
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def directory(tmp_path):
    """An initialised data directory, with empty database files."""
    made = DataDirectory(tmp_path / "box")
    with made.founding(Tokens()):
        for path in made.databases:
            path.touch()
    return made


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("there", "becomes"), [("settings.toml", 0o700), ("a file", 0o755)])
def test_a_data_directory_created_by_hand_becomes_private_if_it_is_empty(tmp_path, there, becomes):
    tmp_path.chmod(0o755)
    (tmp_path / there).touch()

    with DataDirectory(tmp_path).founding(Tokens()):
        pass

    assert mode(tmp_path) == becomes


@pytest.mark.process
def test_a_killed_process_leaves_no_lock_behind(directory):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory.root)], stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(OperatorError), directory.lock():
            pass
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()

    with directory.lock():
        pass


def test_a_failed_write_leaves_the_old_file_and_no_temporary_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    atomic_write(path, b"old")
    monkeypatch.setattr(os, "fsync", lambda _handle: (_ for _ in ()).throw(OSError("disk")))

    with pytest.raises(OSError, match="disk"):
        atomic_write(path, b"new")

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_data_directory_comes_from_the_option_the_variable_or_the_default(
    tmp_path, monkeypatch
):
    environ = {"VENUEBOX_DATA": str(tmp_path / "variable")}
    monkeypatch.setattr(data_directory, "_INSTALLED", tmp_path / "installed")

    assert choose_data_directory(None, {}).root.name == "venuebox"
    (tmp_path / "installed").mkdir()
    assert choose_data_directory(None, {}).root == tmp_path / "installed"
    assert choose_data_directory(None, environ).root == tmp_path / "variable"
    assert choose_data_directory(str(tmp_path), environ).root == tmp_path


def test_two_dots_in_the_data_directory_are_resolved_because_systemd_rejects_them(tmp_path):
    (tmp_path / "far" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "below")

    assert choose_data_directory(f"{tmp_path}/far/../box", {}).root == tmp_path / "box"
    assert choose_data_directory(f"{tmp_path}/link/../box", {}).root == tmp_path / "far" / "box"
    assert choose_data_directory(f"{tmp_path}/link", {}).root == tmp_path / "link"


def test_the_parents_of_a_private_folder_are_private_too(tmp_path):
    before = os.umask(0)
    try:
        make_folder(tmp_path / "a" / "b")
        make_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)

    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_files_left_by_a_power_cut_are_deleted_without_following_links(directory, tmp_path):
    part = ".a.4711-1407.part"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (directory.root / "tls").rmdir()
    (directory.root / "tls").symlink_to(elsewhere)
    left = [folder / part for folder in (directory.root, directory.root / "secrets", elsewhere)]
    for path in left:
        path.touch()

    directory.sweep()

    assert [path for path in left if path.exists()] == [elsewhere / part]
    assert len(directory.master_key()) == 32
