"""Root's rights, given up for good or for a moment."""

import os
import stat
from functools import partial
from types import SimpleNamespace

import pytest

from appliance import file_ownership
from appliance.errors import Trouble
from appliance.file_ownership import acting_as, become_owner, make_folder


class Process:
    """The rights of a process, as `os` would change them."""

    def __init__(self, monkeypatch, *, euid):
        self.done, self.euid, self.egid, self.groups = [], euid, euid, [7]
        for name in ("seteuid", "setegid", "setgroups", "setuid", "setgid"):
            monkeypatch.setattr(os, name, partial(self.set, name.removeprefix("set")))
        monkeypatch.setattr(os, "geteuid", lambda: self.euid)
        monkeypatch.setattr(os, "getgroups", lambda: self.groups)

    def set(self, what, value):
        self.done.append((what, value))
        setattr(self, what, value)


def of_user(uid):
    return SimpleNamespace(stat=lambda: SimpleNamespace(st_uid=uid))


def test_root_acts_as_another_for_a_moment_whatever_happens(monkeypatch):
    process, seen = Process(monkeypatch, euid=0), []

    def look():
        with acting_as(54321):
            seen.append((process.euid, process.egid, process.groups))
            raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        look()

    assert seen == [(54321, 54321, [54321])]
    assert (process.euid, process.egid, process.groups) == (0, 0, [7])


def test_root_gives_up_its_groups_first_and_its_rights_last(monkeypatch):
    process = Process(monkeypatch, euid=0)

    become_owner(of_user(54321))

    assert process.done == [("groups", [54321]), ("gid", 54321), ("uid", 54321)]


@pytest.mark.parametrize(("euid", "owner"), [(0, 0), (1000, 1000), (1000, 54321)])
def test_whoever_is_not_root_before_a_foreign_box_stays_who_he_is(monkeypatch, euid, owner):
    process = Process(monkeypatch, euid=euid)

    become_owner(of_user(owner))
    with acting_as(owner):
        assert process.euid == euid

    assert process.done == []


def test_an_owner_who_cannot_read_the_program_is_told_so(monkeypatch, tmp_path):
    Process(monkeypatch, euid=0)
    monkeypatch.setattr(file_ownership, "__file__", str(tmp_path / "gone" / "file_ownership.py"))

    with pytest.raises(Trouble, match="/opt"):
        become_owner(of_user(54321))


def test_the_folders_above_a_private_one_are_private_too(tmp_path):
    before = os.umask(0)
    try:
        make_folder(tmp_path / "a" / "b")
        make_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)

    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
