"""The list of erasures: a damaged byte in it stops nothing and hides no other line (F9)."""

import asyncio
import os
from pathlib import Path

import pytest

from appliance.actions.enter import enter_by_staff
from appliance.actions.erase_guest import erase_guest
from appliance.errors import Trouble
from appliance.upkeep.erasure_list import LIST, append_to_list, find_unreadable, read_list
from appliance.upkeep.erasures import Erasures
from tests.builders import a_booking

SPOILED = (
    b'{"environment": "li\xff',
    b'"a sentence"',
    b"[1, 2]",
    b"null",
    b'{"environment": "live"}',
    b'{"environment": "live", "reservation": ["a"]}',
    b"[" * 100_000,
)


@pytest.mark.parametrize("line", SPOILED, ids=range(len(SPOILED)))
def test_a_line_that_cannot_be_read_is_told_and_hides_no_other(tmp_path, line):
    append_to_list(tmp_path, "live", {"a": 0})
    (tmp_path / LIST).write_bytes((tmp_path / LIST).read_bytes() + line)

    append_to_list(tmp_path, "live", {"b": 1})

    assert read_list(tmp_path, "live") == ["a", "b"]
    assert find_unreadable(tmp_path) == [3]


def test_a_whole_list_has_nothing_to_tell_and_none_neither(tmp_path):
    assert find_unreadable(tmp_path) == []
    append_to_list(tmp_path, "live", {"a": 0})
    append_to_list(tmp_path, "test", {"b": 0})

    assert find_unreadable(tmp_path) == []


def test_a_list_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / LIST).mkdir()

    with pytest.raises(Trouble, match=LIST):
        read_list(tmp_path, "live")


async def test_a_box_starts_beside_a_damaged_list_says_so_and_notes_again_what_it_knows(
    box, tmp_path, caplog
):
    database = box.live.database
    reservation = await database.write(enter_by_staff, a_booking(), actor="staff:1")
    await database.write(erase_guest, reservation.id, actor="staff:1")
    (tmp_path / LIST).write_bytes(b'\n{"environment": "live", "reserv\xff\n')

    following = Erasures(box.live)
    await following.start()
    await asyncio.sleep(0)
    await following.settle()
    await following.close()

    assert f"{LIST} cannot be read in these lines: 2" in caplog.text
    assert read_list(tmp_path, "live") == [reservation.id]


def test_a_list_that_is_new_is_synced_with_its_folder(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def note(handle):
        synced.append(Path(f"/proc/self/fd/{handle}").readlink())
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)

    append_to_list(tmp_path, "live", {"a": 0})

    assert synced == [tmp_path / LIST, tmp_path]
