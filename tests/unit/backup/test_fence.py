"""The fence: which of two boxes with the same data serves."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from appliance.backup.archive import open_backup
from appliance.backup.catalogue import read_record
from appliance.backup.fence import (
    Event,
    Fenced,
    Installation,
    Marker,
    Stored,
    ensure_installation,
    exchange,
    give_way,
    marker_name,
    note_marker,
    read_installation,
    refuse_later,
    renew_installation,
    seal,
    store_if_possible,
    unseal,
)
from appliance.backup.recovery_key import RecoveryKey
from appliance.backup.restore import restore_blank, restore_latest
from appliance.backup.targets import ensure_sftp_key
from appliance.core.data_directory import DataDirectory
from appliance.core.settings import BackupSettings, Settings
from appliance.core.tokens import Tokens
from tests.unit.backup.making import KEY, a_box_with_guests, a_maker
from tests.unit.backup.shelf import Shelf

OWN = Installation(3, 2_000, "m")
TARGET = BackupSettings(target="sftp://box@nas.example/backups")
NONCE = "0123456789abcdef" * 2


def a_marker(installation, at=5_000):
    return Marker(installation, at, ["http://192.168.1.9:8080"], [])


@pytest.mark.parametrize(
    ("other", "serves"),
    [
        (OWN, True),
        (Installation(2, 9_000, "z"), True),
        (Installation(4, 1_000, "a"), False),
        (Installation(3, 1_000, "z"), True),
        (Installation(3, 3_000, "a"), False),
        (Installation(3, 2_000, "a"), True),
        (Installation(3, 2_000, "z"), False),
    ],
)
def test_the_latest_installation_serves_and_of_any_two_exactly_one(other, serves):
    def may_serve(own, seen):
        try:
            refuse_later(own, [a_marker(seen)])
        except Fenced:
            return False
        return True

    assert may_serve(OWN, other) is serves
    if other != OWN:
        assert may_serve(other, OWN) is not serves


def test_a_box_alone_serves():
    refuse_later(OWN, [])


def test_the_latest_of_several_others_counts():
    earlier, later = replace(OWN, generation=1), replace(OWN, generation=4)

    with pytest.raises(Fenced):
        refuse_later(OWN, [a_marker(earlier), a_marker(later), a_marker(earlier)])


def test_a_marker_is_read_only_with_its_key_and_context_and_unchanged():
    marker = replace(a_marker(OWN), events=[Event(7, "reservation.created", "r", 4_000)])
    sealed = seal(marker, KEY, NONCE)

    assert unseal(sealed, KEY, NONCE) == marker
    assert unseal(sealed, KEY) is None
    assert unseal(sealed, RecoveryKey(bytes(32)), NONCE) is None
    assert unseal(sealed[:-1] + bytes([sealed[-1] ^ 1]), KEY, NONCE) is None
    assert unseal(b"", KEY, NONCE) is None


def test_an_installation_stays_and_is_renewed_on_another_machine(tmp_path):
    directory = DataDirectory(tmp_path)

    first = ensure_installation(directory, Tokens(), 1_000, "here")

    assert ensure_installation(directory, Tokens(), 2_000, "here") == first
    assert ensure_installation(directory, Tokens(), 2_000, "") == first, "no machine id"
    moved = ensure_installation(directory, Tokens(), 3_000, "there")
    assert first.confirmed
    assert not moved.confirmed
    assert moved.installation > first.installation
    assert read_installation(tmp_path) == moved.installation


def test_one_damaged_copy_costs_nothing_and_two_disable_the_fence(tmp_path):
    made = renew_installation(tmp_path, Tokens(), 1_000, confirmed=True)
    paths = [tmp_path / "secrets" / "installation.json", tmp_path / "installation.json"]
    contents = [path.read_bytes() for path in paths]
    for path in paths:
        path.write_bytes(b'{"installation":')
        assert ensure_installation(DataDirectory(tmp_path), Tokens(), 2_000).installation == made
        path.write_bytes(contents[0])
    for path in paths:
        path.write_bytes(b"")

    assert ensure_installation(DataDirectory(tmp_path), Tokens(), 2_000) is None


@pytest.mark.parametrize("confirmed", [True, False])
@pytest.mark.parametrize("hours", [-9, 0, 9])
def test_a_copy_gives_way_to_a_box_that_serves_whatever_that_boxs_clock_says(confirmed, hours):
    own = Stored(replace(OWN, generation=OWN.generation + 1), "here", confirmed)
    marker = a_marker(OWN, at=100_000_000 + hours * 3_600_000)
    with nullcontext() if confirmed else pytest.raises(Fenced):
        give_way(own, [marker])
    give_way(own, [replace(marker, installation=own.installation)])


def test_a_marker_is_silent_after_three_minutes_without_a_change_also_over_restarts(tmp_path):
    directory, marker = DataDirectory(tmp_path), a_marker(OWN)
    own = ensure_installation(directory, Tokens(), 1_000, "")

    def is_silent(marker, monotonic):
        own = ensure_installation(directory, Tokens(), 2_000, "")
        return note_marker(directory, own, marker, monotonic)[1]

    assert not is_silent(marker, 100.0)
    assert not is_silent(marker, 279.0)
    assert is_silent(marker, 280.0)
    marker = replace(marker, at=marker.at - 3_600_000)
    assert not is_silent(marker, 280.0), "the other box wrote it anew"
    assert not is_silent(marker, 10.0), "the machine has started anew"
    assert is_silent(marker, 190.0)
    assert ensure_installation(directory, Tokens(), 3_000, "").installation == own.installation


def test_an_installation_that_cannot_be_stored_does_not_keep_a_box_from_starting(tmp_path):
    (tmp_path / "secrets").write_bytes(b"no folder")

    found = ensure_installation(DataDirectory(tmp_path), Tokens(), 2_000)
    assert found.installation.generation == 1
    with pytest.raises(FileExistsError):
        renew_installation(tmp_path, Tokens(), 2_000, confirmed=True)


def test_a_restored_box_is_later_than_one_that_never_knew_its_installation(tmp_path):
    restored = renew_installation(tmp_path / "new", Tokens(), 1_000, confirmed=True)
    old = ensure_installation(DataDirectory(tmp_path / "old"), Tokens(), 2_000)

    assert restored > old.installation


def test_a_new_installation_is_later_than_all_that_are_known(tmp_path):
    renew_installation(tmp_path, Tokens(), 1_000, confirmed=True)
    other = replace(OWN, generation=8)

    assert renew_installation(tmp_path, Tokens(), 500, other, None, confirmed=True) > other


async def test_the_marker_is_written_unless_a_later_one_is_there(monkeypatch):
    shelf, name = Shelf(), marker_name("venue")
    monkeypatch.setattr("appliance.backup.fence.open_target", shelf.open)
    later = replace(OWN, generation=4)

    await tell(OWN)
    assert unseal(shelf.markers[name], KEY).installation == OWN
    await tell(later)
    assert unseal(shelf.markers[name], KEY).installation == later
    with pytest.raises(Fenced):
        await tell(OWN)
    assert unseal(shelf.markers[name], KEY).installation == later


async def tell(own):
    """Write the marker of a confirmed box."""
    nowhere = DataDirectory("/nowhere")
    await exchange(TARGET, nowhere, KEY, "venue", Stored(own, ""), a_marker(own), lambda _: False)


async def test_a_marker_that_nobody_can_read_fences_nobody(monkeypatch):
    shelf = Shelf(markers={marker_name("venue"): b"junk"})
    monkeypatch.setattr("appliance.backup.fence.open_target", shelf.open)

    await tell(OWN)

    assert unseal(shelf.markers[marker_name("venue")], KEY).installation == OWN


@pytest.fixture
def made(tmp_path):
    """A box that has served, with a backup."""
    found = a_box_with_guests(tmp_path)
    ensure_installation(found.directory, Tokens(), found.clock.now())
    a_maker(found).make()
    return found


def test_a_restored_box_is_later_than_the_one_that_made_the_backup(made, tmp_path):
    before, blank = read_installation(made.root), DataDirectory(tmp_path / "blank")
    [path] = (made.root / "backups").glob("*.venuebox-backup")
    previous = replace(before, generation=6)

    with open_backup(path) as file:
        restore_blank(file, KEY, blank, made.clock, a_maker(made).zones, print, previous)

    assert read_installation(blank.root).generation == 7
    assert read_installation(made.root) == before


def test_a_box_restored_from_the_first_backup_has_the_key_for_the_marker(made, tmp_path):
    settings, blank = Settings(backup=TARGET), DataDirectory(tmp_path / "blank")
    path, _ = a_maker(made, settings=settings).make()

    with open_backup(path) as file:
        restore_blank(file, KEY, blank, made.clock, a_maker(made).zones, print)

    assert ensure_sftp_key(blank) == ensure_sftp_key(made.directory)


def restored_in_place(made):
    folders = [made.root / "backups"]
    restore_latest(KEY, made.directory, folders, made.clock, a_maker(made).zones, print)
    return ensure_installation(made.directory, Tokens(), made.clock.now())


def test_a_restore_in_place_does_not_bring_back_a_box_whose_place_was_taken(made):
    own = ensure_installation(made.directory, Tokens(), made.clock.now())
    other = Installation(own.installation.generation + 1, made.clock.now() - 1, "other")
    fenced = store_if_possible(made.root, replace(own, replaced_by=a_marker(other)))

    assert restored_in_place(made) == fenced
    assert read_record(made.root).number == 1, "less than any number of the other box"
    assert restored_in_place(made).installation < other


def test_a_box_that_lost_its_installation_is_not_final_after_a_restore_in_place(made):
    before = read_installation(made.root)
    for path in made.root.rglob("installation.json"):
        path.unlink()

    restored = restored_in_place(made)

    assert restored.installation > before
    assert not restored.confirmed
