"""Two backups at once: the night's and one that was asked for. Each is whole (F31)."""

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from appliance.backup.alone import alone
from appliance.backup.recovery_key import ensure_recovery_key
from appliance.backup.shelf import SUFFIX, list_backups, put_in_place, read_record
from appliance.data_directory import DataDirectory
from appliance.errors import Trouble
from appliance.tokens import Tokens
from tests.appliance.backup.making import a_box_with_guests, a_maker


@pytest.fixture
def made(tmp_path):
    return a_box_with_guests(tmp_path)


def shelf_of(made):
    return made.root / "backups"


def test_two_that_begin_in_one_process_are_both_made_and_leave_nothing_over(made):
    stages, together = {"one": [], "two": []}, threading.Barrier(2)

    def make(name):
        together.wait(60)
        maker = a_maker(made, tell=lambda *_: stages[name].append(time.monotonic()))
        return maker.make(may_rotate=False)[0]

    with ThreadPoolExecutor(2) as pool:
        paths = set(pool.map(make, stages))

    assert len(paths) == 2
    assert {path for path, _ in list_backups(shelf_of(made))} == paths
    assert set(shelf_of(made).iterdir()) == paths
    assert list(made.directory.tmp.iterdir()) == []
    assert read_record(made.root).trouble == ""
    one, two = sorted(stages.values(), key=lambda each: each[-1])
    assert one[-1] < two[1], "the second begins its work when the first has ended"


def test_what_a_power_cut_left_of_a_process_of_the_same_number_is_in_nobodys_way(made):
    left = shelf_of(made) / f".{os.getpid()}{SUFFIX}.part"
    left.write_bytes(b"half of it")

    path, _ = a_maker(made).make()

    assert path.exists()
    assert left.exists(), "it may be another one's that runs just now: it goes after six hours"


def test_who_waits_too_long_says_why_and_one_to_another_folder_is_made_meanwhile(made, tmp_path):
    (tmp_path / "usb").mkdir()

    with alone(shelf_of(made), 1.0, "this"):
        with pytest.raises(Trouble, match="another backup of this box has not ended"):
            a_maker(made, patience=0.2).make()
        assert "another backup" in read_record(made.root).trouble
        path, _ = a_maker(made, patience=0.2).make(to=tmp_path / "usb")

    assert path.exists()
    a_maker(made, patience=0.2).make()
    assert read_record(made.root).trouble == ""


def test_two_of_one_second_into_another_folder_replace_neither(made, tmp_path, monkeypatch):
    shelf, together = tmp_path / "usb", threading.Barrier(2)
    shelf.mkdir()

    def put_together(aside, path):
        together.wait(60)  # both have chosen their names
        put_in_place(aside, path)

    monkeypatch.setattr("appliance.backup.making.put_in_place", put_together)
    with ThreadPoolExecutor(2) as pool:
        paths = set(pool.map(lambda _: a_maker(made).make(to=shelf)[0], range(2)))

    assert set(shelf.iterdir()) == paths
    assert {path for path, _ in list_backups(shelf)} == paths
    assert len(paths) == 2


def test_one_that_cannot_be_put_in_place_leaves_no_name_behind(made, tmp_path, monkeypatch):
    def put_nothing(_aside, _path):
        raise OSError(errno.EIO, "the volume is gone")

    shelf = tmp_path / "usb"
    shelf.mkdir()
    monkeypatch.setattr("appliance.backup.making.put_in_place", put_nothing)

    with pytest.raises(Trouble, match="the volume is gone"):
        a_maker(made).make(to=shelf)

    assert list(shelf.iterdir()) == []


def test_all_who_ask_first_for_the_recovery_key_get_the_same(tmp_path):
    directory = DataDirectory(tmp_path / "box")
    directory.make_folders()

    with ThreadPoolExecutor(4) as pool:
        with alone(directory.root / "secrets", 1.0, "this"):
            asked = [pool.submit(ensure_recovery_key, directory, Tokens()) for _ in range(4)]
            time.sleep(0.3)
            assert not any(one.done() for one in asked)
        keys = {one.result(10).text for one in asked}

    assert len(keys) == 1
