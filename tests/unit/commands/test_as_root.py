"""A command that root runs in another user's directory acts as that user (S25).

`venuebox service install` creates a user without a shell, so the operator runs commands as root.
Links and other files that this user leaves in the directory must not expose root's files.
"""

import argparse
import contextlib
import importlib
import io
import os
import pkgutil
import pwd
import shutil
import tarfile
import tempfile
from pathlib import Path

import pyrage
import pytest

import appliance
from appliance.backup.recovery_key import find_recovery_key
from appliance.core.data_directory import DataDirectory
from tests.unit.commands.open_folders import let_everybody_enter
from tests.unit.commands.other_user import NOBODY, run_as_root
from web.main import make_parser

pytestmark = [pytest.mark.slow, pytest.mark.process]

VENUE, BACKUP, LIVE = "the venue file", "a backup", ("--environment", "live")
# The arguments of each command that uses a data directory.
COMMANDS = {
    "serve": ["--host", "192.0.2.1"], "init": ["--venue", VENUE], "venue apply": [VENUE],
    "key create": [*LIVE, "--name", "N"], "key list": [], "key revoke": ["N"],
    "terminal create": [*LIVE, "--name", "N"], "terminal pair": [*LIVE, "--name", "N"],
    "staff create": ["--name", "N", "--role", "owner"], "staff reset": ["N"],
    "deliveries": [*LIVE], "doctor": [],
    "tls import": ["--cert", VENUE, "--key", VENUE], "tls obtain": [], "bridge": [], "backup": [],
    "restore": [BACKUP, "--key", "N"],
    "relay join": ["N"], "relay leave": [], "mirror check": [],
}  # fmt: skip
ROOTS_OWN = {"service install", "update"}  # tested in test_service.py and test_update.py


def data_commands(parser=None, words=()):
    """Yield the names of the commands that take `--data`."""
    actions = (parser or make_parser())._actions
    groups = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
    if groups:
        for word, inner in groups[0].choices.items():
            yield from data_commands(inner, (*words, word))
    elif any("--data" in action.option_strings for action in actions):
        yield " ".join(words)


def tree(folder):
    """Return the owner, mode and content of everything in the folder."""
    return {
        path: (path.lstat().st_uid, path.lstat().st_mode, path.is_file() and path.read_bytes())
        for path in (folder, *sorted(folder.rglob("*")))
    }


def kept_by_root(folder):
    return [str(path.relative_to(folder)) for path in (folder, *folder.rglob("*"))
            if path.lstat().st_uid != NOBODY]  # fmt: skip


def names_in(data):
    """Return the names in the only backup."""
    [made] = (data / "backups").iterdir()
    key = find_recovery_key(DataDirectory(data))
    with tarfile.open(fileobj=io.BytesIO(pyrage.decrypt(made.read_bytes(), [key.identity]))) as tar:
        return set(tar.getnames())


def give(folder):
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


if os.geteuid() == 0:  # without root there are no privileges to drop

    @pytest.fixture
    def open_folder():
        """A folder that other users may enter, unlike pytest's own folders."""
        with tempfile.TemporaryDirectory(prefix="venuebox-") as name:
            folder = Path(name)
            folder.chmod(0o755)
            yield folder

    @pytest.fixture
    def data(box, open_folder):
        """The data directory of a box, owned by the user `nobody`."""
        box.data = box.data.rename(open_folder / "box")
        give(box.data)
        return box.data

    @pytest.fixture
    def roots(open_folder):
        """A folder owned by root, with another folder and secrets in it."""
        folder = open_folder / "roots"
        for path in (folder, folder / "deep"):
            path.mkdir()
            path.chmod(0o755)
            (path / "shadow").write_text("root:secret")
            (path / "shadow").chmod(0o600)
            (path / "list").write_text("for all")
            (path / "list").chmod(0o644)
        return folder

    def test_every_command_run_as_root_becomes_the_owner_before_it_opens_a_file(
        data, venue_file, tmp_path
    ):
        run_as_root(data, ["backup"])
        [made] = (data / "backups").iterdir()
        named = {VENUE: str(venue_file), BACKUP: str(made.rename(tmp_path / made.name))}
        runs = [
            [*words.split(), *(named.get(word, word) for word in more)]
            for words, more in COMMANDS.items()
        ]

        said = run_as_root(data, *runs, ["serve", "--demo", "--data", str(data), "--port", "0"])

        assert set(data_commands()) == {*COMMANDS, *ROOTS_OWN}
        user = pwd.getpwuid(NOBODY)
        ids = [NOBODY] * 3 + [user.pw_gid] * 3 + os.getgrouplist(user.pw_name, user.pw_gid)
        for argv, done in zip(runs, said, strict=False):
            assert (done["ids"], done["touched"]) == (ids, []), (argv, done)
        assert kept_by_root(data) == []

    @pytest.mark.parametrize("place", ["tls", "tls/own"])
    def test_a_backup_does_not_follow_symbolic_links(data, roots, place):
        before = tree(roots)
        if place == "tls":
            shutil.rmtree(data / "tls", ignore_errors=True)
        (data / place).parent.mkdir(exist_ok=True)
        (data / place).symlink_to(roots)
        give(data)

        [backup] = run_as_root(data, ["backup"])

        assert tree(roots) == before
        assert (backup["status"] == 1) == (place == "tls"), backup
        if place != "tls":
            assert "shadow" not in names_in(data)

    @pytest.mark.parametrize("place", ["tls", "tls/sub"])
    def test_a_restore_does_not_write_through_symbolic_links(data, roots, place):
        before = tree(roots)
        (data / place).mkdir(parents=True, exist_ok=True)
        (data / place / "zz-venuebox.sh").write_text("echo mine")
        give(data)
        [backup] = run_as_root(data, ["backup"])
        assert backup["status"] == 0, backup
        shutil.rmtree(data / place)
        (data / place).symlink_to(roots)
        (data / "live.db").write_bytes(b"scribbled over")
        give(data)

        [restore] = run_as_root(data, ["restore", "--latest"])

        assert restore["status"] == 1
        assert tree(roots) == before

    @contextlib.contextmanager
    def as_nobody():
        groups = os.getgroups()
        os.setgroups([])
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setgroups(groups)

    @pytest.fixture
    def strangers(box, tmp_path):
        """A box owned by root in a folder that anybody may enter."""
        for module in pkgutil.walk_packages(appliance.__path__, "appliance."):
            importlib.import_module(module.name)
        importlib.import_module("web.serve")
        let_everybody_enter(tmp_path)
        return box

    @pytest.mark.parametrize(
        "words",
        ["key list", "key create --environment live --name Partner", "doctor",
         "backup", "backup kit", "restore --latest", "serve --port 0"],
    )  # fmt: skip
    def test_another_user_gets_an_error_that_names_the_owner_of_the_box(strangers, words):
        with as_nobody():
            said = strangers.complaint(*words.split())

        assert f"only root may open {strangers.data}" in said
        assert "sudo" in said
