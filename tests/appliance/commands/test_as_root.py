"""What root does beside a box of another user leaves nothing that this user cannot read (S25).

`venuebox service install` makes a user without a shell, so whoever looks after the box is root.
"""

import os
import shutil
from pathlib import Path

import pytest

from appliance.backup.recovery_key import find_recovery_key
from appliance.data_directory import DataDirectory, write_file
from appliance.store import examination
from appliance.upkeep.ballast import Ballast
from appliance.upkeep.erasure_list import append_to_list
from appliance.upkeep.watchdog import Watchdog

NOBODY = 65534

if os.geteuid() == 0:  # who is not root can give nothing away, and has nothing to

    @pytest.fixture
    def nobodys(box):
        """The box, given to nobody."""
        for path in (box.data, *box.data.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        return box

    def kept_by_root(folder):
        return [str(path.relative_to(folder)) for path in folder.rglob("*")
                if path.lstat().st_uid != NOBODY]  # fmt: skip

    def test_a_certificate_that_root_renews_is_the_boxs(nobodys):
        shutil.rmtree(nobodys.data / "tls")

        assert nobodys("tls", "renew") == 0, nobodys.err

        assert kept_by_root(nobodys.data) == []
        assert {path.name for path in (nobodys.data / "tls").iterdir()} == {
            "authority.pem", "box.pem",
        }  # fmt: skip

    def test_a_backup_that_root_makes_its_key_and_its_record_are_the_boxs(nobodys):
        assert nobodys("backup") == 0, nobodys.err

        assert kept_by_root(nobodys.data) == []
        assert len(list((nobodys.data / "backups").iterdir())) == 1

    def test_a_backup_in_a_folder_of_all_is_the_boxs_that_lets_it_go_later(nobodys, tmp_path):
        shelf = tmp_path / "shelf"
        shelf.mkdir()
        (nobodys.data / "settings.toml").write_text(f'[backup]\ndirectory = "{shelf}"\n')

        assert nobodys("backup") == 0, nobodys.err

        assert shelf.stat().st_uid == 0
        assert [path.stat().st_uid for path in shelf.iterdir()] == [NOBODY]

    def test_a_backup_for_a_folder_of_roots_stays_roots(nobodys, tmp_path):
        (tmp_path / "usb").mkdir()

        assert nobodys("backup", "--to", str(tmp_path / "usb")) == 0, nobodys.err

        assert [path.stat().st_uid for path in (tmp_path / "usb").iterdir()] == [0]
        assert kept_by_root(nobodys.data) == []

    def test_the_box_that_root_puts_back_is_nobodys_and_so_is_what_was_there(nobodys):
        nobodys("backup")

        assert nobodys("restore", "--latest") == 0, nobodys.err

        assert kept_by_root(nobodys.data) == []
        [aside] = nobodys.data.glob("damaged-*")
        assert (aside / "master.key").exists()

    def test_a_box_that_root_restores_to_a_folder_of_nobodys_is_nobodys(nobodys, tmp_path):
        nobodys("backup")
        [made] = (nobodys.data / "backups").iterdir()
        key = find_recovery_key(DataDirectory(nobodys.data))
        nobodys.data = tmp_path / "another"
        nobodys.data.mkdir()
        os.chown(nobodys.data, NOBODY, NOBODY)

        assert nobodys("restore", str(made), "--key", key.text) == 0, nobodys.err

        assert kept_by_root(nobodys.data) == []
        assert (nobodys.data / "secrets" / "recovery.key").exists()

    def test_the_reserve_for_a_full_disk_that_root_makes_is_the_boxs(nobodys):
        assert Ballast(nobodys.data, size=4 << 20).make()

        assert kept_by_root(nobodys.data) == []

    def test_what_root_alone_can_read_of_the_program_is_read_before_it_acts_as_the_owner(
        nobodys, monkeypatch
    ):
        read = []
        monkeypatch.setattr(examination, "check_pages", lambda: read.append(os.geteuid()))

        nobodys("doctor", "--json")

        assert set(read) == {0}

    def test_the_list_of_a_guest_whom_root_erases_is_the_boxs(nobodys):
        append_to_list(nobodys.data, "live", {"a": 0})

        assert kept_by_root(nobodys.data) == []

    def test_a_link_that_the_boxs_user_leaves_gives_nothing_of_roots_away(tmp_path, monkeypatch):
        roots = tmp_path / "roots"
        roots.write_text("mine")
        folder = tmp_path / "box"
        folder.mkdir()
        os.chown(folder, NOBODY, NOBODY)
        monkeypatch.setattr(os, "getpid", lambda: 7)
        monkeypatch.setattr("threading.get_ident", lambda: 7)
        (folder / ".file.77").symlink_to(roots)

        write_file(folder / "file", b"the box's")

        assert (roots.read_text(), roots.stat().st_uid) == ("mine", 0)
        assert (folder / "file").read_bytes() == b"the box's"
        assert Path(folder / "file").stat().st_uid == NOBODY

    @pytest.mark.parametrize("link", [".ballast", "stuck.txt"])
    def test_nor_does_one_in_the_place_of_what_a_serving_root_writes(tmp_path, link):
        roots = tmp_path / "roots"
        roots.write_text("mine")
        folder = tmp_path / "box"
        folder.mkdir()
        os.chown(folder, NOBODY, NOBODY)
        (folder / link).symlink_to(roots)

        assert Ballast(folder, size=4 << 20).make()
        Watchdog(folder / "stuck.txt", {}, leave=lambda: None)._end()

        assert (roots.read_text(), roots.stat().st_uid) == ("mine", 0)
        assert kept_by_root(folder) == []
