"""A volume that may only be read (F7): one sentence, nothing changed, and later it starts again.

A running box whose writes fail ends as with any failing disk: see test_disk.py.
"""

import subprocess

import pytest

from tests.faults.small_disk import unshare
from tests.journeys.box_process import PROGRAM, BoxProcess, clean_environ, found_box, venuebox

_MOUNT = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def read_only(folder):
    """A command prefix: what follows may only read what is in `folder`."""
    return (*unshare(), "sh", "-c", _MOUNT, str(folder))


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*.db*") if path.is_file()}


if unshare() is not None:  # elsewhere nobody may have such a volume

    def test_on_a_volume_that_may_only_be_read_the_box_says_so_and_changes_nothing(tmp_path):
        founded = found_box(tmp_path)
        box = BoxProcess(founded.data, log=tmp_path / "box.log")
        with box:  # a killed box leaves a log that has to be folded
            pass
        before = files_of(founded.data)
        stuck = BoxProcess(
            founded.data, log=tmp_path / "stuck.log", wrapper=read_only(founded.data)
        )

        with pytest.raises(AssertionError, match="it did not become ready"):
            stuck.start()

        said = stuck.complaints().splitlines()
        assert len(said) == 1, said
        assert said[0].startswith("venuebox: ")
        assert "nothing can be written" in said[0] or "may only be read" in said[0]
        assert files_of(founded.data) == before
        with box:
            assert venuebox("key", "list", "--environment", "live", data=founded.data)

    @pytest.mark.parametrize("command", ["create", "list"])
    def test_on_such_a_volume_a_command_says_so_too(tmp_path, command):
        founded = found_box(tmp_path)
        before = files_of(founded.data)
        argv = ("key", command, "--environment", "live", "--data", str(founded.data))
        name = ("--name", "Partner") if command == "create" else ()

        done = subprocess.run(
            [*read_only(founded.data), PROGRAM, *argv, *name],
            capture_output=True, text=True, check=False, env=clean_environ(),
        )  # fmt: skip

        assert done.returncode == 1
        assert "cannot be opened, for nothing can be written" in done.stderr
        assert files_of(founded.data) == before
