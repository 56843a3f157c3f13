"""The standby: what it keeps, when it may take over, and which events it tells as lost."""

import asyncio
import json
from contextlib import closing
from dataclasses import replace

import pytest

from appliance.backup.fence import (
    Event,
    Installation,
    Marker,
    ensure_installation,
    marker_name,
    read_installation,
    seal,
)
from appliance.backup.recovery_key import find_recovery_key
from appliance.backup.standby import (
    FRESH_SECONDS,
    LOST_FILE,
    Refused,
    Standby,
    State,
    claim,
    read_marker,
    read_source,
    set_up,
)
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.settings import BackupSettings
from appliance.core.tokens import Tokens
from appliance.database.connection import open_connection
from appliance.database.integrity import describe_venue
from tests.unit.backup.making import KEY, a_box_with_guests, a_maker
from tests.unit.backup.shelf import Shelf

TARGET = BackupSettings(target="s3://bucket/riad", target_key="id", target_secret="planted")
GUESTS = 10
ADDRESS = "http://192.168.1.7:8080"


class World:
    """A box, the target that has its backup and its marker, and a standby."""

    def __init__(self, folder, monkeypatch):
        self.made = a_box_with_guests(folder, GUESTS)
        self.shelf = Shelf()
        for module in ("fence", "standby"):
            monkeypatch.setattr(f"appliance.backup.{module}.open_target", self.shelf.open)
        self.clock = self.made.clock
        found = ensure_installation(self.made.directory, Tokens(), self.clock.now())
        self.installation = found.installation
        self.venue_id = describe_venue(self.made.directory.database("live"))[2]
        self.back_up()
        self.directory = DataDirectory(folder / "standby")
        self.source = set_up(self.directory, TARGET, KEY)

    def back_up(self):
        path, _ = a_maker(self.made).make()
        self.shelf.files[path.name] = path.read_bytes()
        return path.name

    def damage(self, name):
        content = self.shelf.files[name]
        self.shelf.files[name] = content[:-1] + bytes([content[-1] ^ 1])

    def report(self, *events, installation=None):
        """Write the marker of the serving box."""
        marker = Marker(
            installation or self.installation, self.clock.now(), [ADDRESS], list(events)
        )
        self.shelf.markers[marker_name(self.venue_id)] = seal(marker, KEY)

    def standby(self):
        return Standby(self.directory, self.source, self.clock, a_maker(self.made).zones)

    @property
    def kept(self):
        return sorted(path.name for path in (self.directory.root / "backups").iterdir())


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


def test_a_standby_remembers_its_target_and_code_in_a_private_file(world):
    assert read_source(world.directory.root) == world.source
    assert world.source.target_secret == "planted"
    assert len(world.source.code) == 10
    assert find_recovery_key(world.directory) == KEY
    assert (world.directory.root / "standby.json").stat().st_mode & 0o077 == 0
    assert set_up(world.directory, TARGET, KEY).code == world.source.code


def test_a_directory_with_something_else_is_no_standby(world, tmp_path):
    with pytest.raises(OperatorError):
        set_up(world.made.directory, TARGET, KEY)
    assert read_source(world.made.root) is None
    other = DataDirectory(tmp_path / "other")
    other.root.mkdir()
    other.settings_file.touch()
    with pytest.raises(OperatorError):
        set_up(other, TARGET, KEY)
    (world.directory.root / "standby.json").write_bytes(b"{")
    with pytest.raises(OperatorError):
        read_source(world.directory.root)


def test_a_new_backup_is_fetched_once_and_proven(world):
    standby = world.standby()
    for _ in range(2):
        state = standby.refresh()

    [name] = world.shelf.files
    assert (state.ready.file, state.ready.reservations, state.trouble) == (name, GUESTS, "")
    assert world.shelf.calls.count(("get", name)) == 1
    assert world.kept == [name]
    assert (world.directory.root / "backups" / name).stat().st_mode & 0o077 == 0


def test_newer_backups_replace_older_ones(world):
    standby = world.standby()
    names = [next(iter(world.shelf.files))]
    for _ in range(3):
        standby.refresh()
        world.clock.advance(900)
        names.append(world.back_up())
    standby.refresh()

    assert standby.state.ready.file == names[-1]
    assert world.kept == names[-2:]


def test_a_file_that_is_no_backup_is_left_out(world):
    standby = world.standby()
    good = standby.refresh().ready
    world.shelf.files[world.back_up()] = b"junk"

    assert standby.refresh().ready == good


def test_a_backup_that_cannot_be_restored_replaces_nothing_and_is_fetched_once(world):
    standby = world.standby()
    good = standby.refresh().ready
    world.clock.advance(900)
    name = world.back_up()
    world.damage(name)

    for _ in range(2):
        state = standby.refresh()

    assert state.ready == good
    assert state.trouble
    assert world.shelf.calls.count(("get", name)) == 1


def test_the_trouble_with_an_unusable_backup_is_told_again_after_another_trouble(world):
    standby = world.standby()
    world.clock.advance(900)
    world.damage(world.back_up())
    why = standby.refresh().trouble
    world.shelf.trouble = "did not answer"
    assert standby.refresh().trouble != why
    world.shelf.trouble = ""

    assert standby.refresh().trouble == why


def test_a_backup_of_another_key_is_told(world):
    other = set_up(world.directory, TARGET, type(KEY)(bytes(32)))
    standby = Standby(world.directory, other, world.clock, a_maker(world.made).zones)

    assert standby.refresh().ready is None
    assert standby.state.trouble


def test_a_standby_that_restarts_without_the_target_has_its_backup(world):
    world.standby().refresh()
    world.shelf.trouble = "did not answer"

    state = world.standby().refresh()

    assert state.ready is not None
    assert state.trouble == "did not answer"
    assert state.seen_at is None


def test_a_box_that_reported_just_now_is_not_replaced_without_force(world):
    world.report()
    standby = world.standby()
    standby.refresh()

    with pytest.raises(Refused):
        standby.take_over([], force=False)
    world.clock.advance(FRESH_SECONDS - 1)
    with pytest.raises(Refused):
        standby.take_over([], force=False)
    assert not world.directory.holds_a_box()

    world.clock.advance(1)
    standby.take_over([], force=False)
    assert world.directory.holds_a_box()


def test_a_box_that_answers_is_never_replaced(world):
    world.report()
    standby = world.standby()
    standby.refresh()
    world.clock.advance(10 * FRESH_SECONDS)
    live = Marker(world.installation, world.clock.now(), [ADDRESS], [])

    for force in (False, True):
        with pytest.raises(Refused):
            standby.take_over([live], force=force)
    assert not world.directory.holds_a_box()


@pytest.mark.parametrize("trouble", ["", "did not answer"])
def test_without_word_of_the_other_box_a_person_has_to_say_that_it_is_off(world, trouble):
    standby = world.standby()
    standby.refresh()
    world.shelf.trouble = trouble
    standby.refresh()

    with pytest.raises(Refused):
        standby.take_over([], force=False)
    _, lost = standby.take_over([], force=True)

    assert (lost.told_at, lost.events) == (None, [])
    assert world.directory.holds_a_box()


def test_nothing_is_taken_over_without_a_proven_backup(world):
    world.shelf.files.clear()
    standby = world.standby()
    standby.refresh()

    with pytest.raises(OperatorError):
        standby.take_over([], force=True)
    assert not world.directory.holds_a_box()


def test_the_box_that_took_over_is_later_than_any_that_was_seen(world):
    world.report(installation=replace(world.installation, generation=5))
    standby = world.standby()
    standby.refresh()

    standby.take_over([], force=True)

    assert read_installation(world.directory.root).generation == 6
    assert read_source(world.directory.root) is None, "it is a box now"


def test_the_events_after_the_backup_are_told_with_the_ids_that_partners_know(world):
    path = world.made.directory.database("live")
    with closing(open_connection(path, writable=False)) as connection:
        rows = connection.execute("SELECT seq, type, reservation_id, occurred_at FROM event")
        restored = [Event(*row) for row in rows]
    later = range(len(restored) + 1, 40)
    events = [Event(seq, "reservation.created", f"r{seq}", 1_000) for seq in later]
    world.report(*restored, *events)
    standby = world.standby()
    standby.refresh()
    told_at = world.clock.now()

    _, lost = standby.take_over([], force=True)

    assert lost.unknown == 0
    assert lost.told_at == told_at
    assert restored
    assert lost.events == events
    written = json.loads((world.directory.root / LOST_FILE).read_text())
    assert [event["id"] for event in written["events"]] == [event.id for event in lost.events]


def test_events_of_a_box_that_took_over_are_told_although_the_restored_box_has_the_numbers(world):
    seq = 2
    world.report(Event(seq, "reservation.created", "booked elsewhere", 2_000))
    standby = world.standby()
    standby.refresh()

    _proven, lost = standby.take_over([], force=True)

    assert [event.reservation_id for event in lost.events] == ["booked elsewhere"]
    assert lost.unknown == 0


def test_events_of_which_only_the_number_is_known_are_counted(world):
    world.report(Event(GUESTS + 6, "reservation.created", "r", 1_000))
    standby = world.standby()
    standby.refresh()

    assert standby.take_over([], force=True)[1].unknown == 5


async def test_a_box_whose_place_was_taken_can_be_put_back(world):
    later = Installation(4, world.clock.now(), "other")
    world.report(installation=later)
    directory, now = world.made.directory, world.clock.now()

    state = await read_marker(directory, TARGET, KEY, now)
    with pytest.raises(Refused):
        claim(directory, state, [], world.clock, force=False)
    with pytest.raises(Refused):
        claim(directory, state, [state.marker], world.clock, force=True)
    claim(directory, state, [], world.clock, force=True)

    assert read_installation(world.made.root) > later


def test_the_backups_of_a_box_that_was_put_back_are_later_than_the_other_boxs(world, tmp_path):
    standby = world.standby()
    standby.refresh()
    standby.take_over([], force=True)
    other = replace(world.made, directory=world.directory)
    path, _ = a_maker(other).make()
    world.shelf.files[path.name] = path.read_bytes()
    world.report(installation=read_installation(other.root))
    state = asyncio.run(read_marker(world.made.directory, TARGET, KEY, world.clock.now()))
    claim(world.made.directory, state, [], world.clock, force=True)
    world.clock.advance(60)

    name = world.back_up()

    world.directory = DataDirectory(tmp_path / "new standby")
    set_up(world.directory, TARGET, KEY)
    assert world.standby().refresh().ready.file == name


@pytest.mark.parametrize("target", ["", TARGET.target])
async def test_a_box_is_put_back_by_force_without_the_target(world, target):
    world.shelf.trouble = "did not answer"
    directory, backup = world.made.directory, BackupSettings(target=target)

    state = await read_marker(directory, backup, KEY, world.clock.now())
    with pytest.raises(Refused):
        claim(directory, state, [], world.clock, force=False)
    claim(directory, state, [], world.clock, force=True)

    assert read_installation(world.made.root) > world.installation


def test_a_box_that_runs_is_not_put_back(world):
    told = "nothing is left to do"
    with world.made.directory.lock(), pytest.raises(OperatorError, match=told):
        claim(world.made.directory, State(), [], world.clock, force=True)
    assert read_installation(world.made.root) == world.installation
