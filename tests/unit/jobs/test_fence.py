"""The running box and its fence: told to the target, stopped by a later installation."""

import asyncio
import base64
from dataclasses import replace

import pytest

from appliance.alerts import list_alerts
from appliance.backup.catalogue import SUFFIX
from appliance.backup.fence import (
    Fenced,
    Marker,
    Stored,
    _store,
    marker_name,
    read_installation,
    renew_installation,
    seal,
    unseal,
)
from appliance.backup.recovery_key import keep_recovery_key
from appliance.backup.standby import claim, read_marker
from appliance.core.data_directory import DataDirectory
from appliance.jobs.fence import EVERY_MS, FENCED, FIRST_MS, FenceWatch
from appliance.reservations.create import enter_by_staff
from appliance.venue.model import get_venue
from tests.builders import a_booking, table_id
from tests.conftest import opened_box, with_settings
from tests.unit.backup.making import KEY
from tests.unit.backup.shelf import Shelf

NONCE = "0123456789abcdef" * 2


class World:
    """A box with a target, its fence, and the boxes that it finds on the network."""

    def __init__(self, box, root, shelf):
        self.box, self.shelf = box, shelf
        self.directory = DataDirectory(root)
        self.others, self.looks, self.fenced = [], 0, []
        self.start_again()
        self.name = marker_name(box.live.database.peek(get_venue).id)

    def start_again(self):
        self.watch = FenceWatch(self.box, self.look, self.fenced.append)
        return self.watch

    async def look(self, _key, _own):
        self.looks += 1
        return self.others

    @property
    def own(self):
        return read_installation(self.directory.root)

    @property
    def marker(self):
        """The marker at the target, or None."""
        return unseal(self.shelf.markers.get(self.name, b""), KEY)

    def later(self):
        """Return the marker of a box that was put in this one's place."""
        taken = replace(self.own, generation=self.own.generation + 1, id="other")
        return Marker(taken, self.box.clock.now(), ["http://192.168.1.9:8080"], [])

    def take_place(self):
        self.shelf.markers[self.name] = seal(self.later(), KEY)

    async def alerts(self):
        return [alert.name for alert in await self.box.live.database.read(list_alerts)]


@pytest.fixture
async def world(tmp_path, clock, monkeypatch):
    shelf = Shelf()
    monkeypatch.setattr("appliance.backup.fence.open_target", shelf.open)
    settings = with_settings(backup={"target": "sftp://box@nas.example/backups"})
    keep_recovery_key(DataDirectory(tmp_path), KEY)
    async with opened_box(tmp_path, clock, settings) as box:
        yield World(box, tmp_path, shelf)


async def test_a_box_alone_tells_the_target_that_it_serves(world):
    await world.watch.check_at_start()

    assert world.marker.installation == world.own
    assert world.marker.at == world.box.clock.now()
    assert world.fenced == []


async def test_the_marker_lists_the_events_that_the_copy_lacks_and_always_the_last(world):
    copied = world.directory.root / "last-copy.json"
    copied.write_text(f'{{"file": "riad-2026-11-21T190000Z{SUFFIX}"}}')
    database = world.box.live.database
    for number in (1, 2):
        booking = a_booking(table_id=table_id(f"T{number}"))
        reservation = await database.write(enter_by_staff, booking, actor="staff:1")
    await world.watch.check()
    assert len(world.marker.events) == 2
    last = world.marker.events[-1]
    assert last.reservation_id == reservation.id

    copied.write_text(f'{{"file": "riad-2026-11-21T200000Z{SUFFIX}"}}')
    await world.watch.check()
    assert world.marker.events == [last]


@pytest.fixture
def copied(world):
    """The box as a copy of one that wrote its marker just now; the fence starts anew."""
    before = Marker(world.own, world.box.clock.now(), ["http://192.168.1.9:8080"], [])
    world.shelf.markers[world.name] = seal(before, KEY)
    copy = replace(world.own, generation=world.own.generation + 1, id="copy")
    _store(world.directory.root, Stored(copy, "", confirmed=False))
    world.start_again()
    return before


async def test_a_copy_gives_way_and_serves_when_the_other_is_silent(world, copied, clock):
    with pytest.raises(Fenced):
        await world.watch.check_at_start()
    assert world.marker == copied
    assert world.watch.prove(NONCE) == ""

    clock.advance(180)
    await world.watch.check()
    assert world.marker.installation == world.own
    assert world.watch.prove(NONCE)
    assert world.fenced == []


@pytest.mark.parametrize("hours", [-9, 9])
@pytest.mark.parametrize("place", ["target", "network"])
async def test_a_copy_with_a_wrong_clock_never_displaces_the_serving_box(
    world, copied, clock, hours, place
):
    real = clock.now()
    clock.milliseconds += hours * 3_600_000
    if place == "network":
        world.shelf.markers.clear()
    for minute in range(5):
        report = replace(copied, at=real + minute * 60_000)
        if place == "network":
            world.others = [report]
        else:
            world.shelf.markers[world.name] = seal(report, KEY)
        await world.start_again().check()
        assert len(world.fenced) == minute + 1
        assert world.watch.prove(NONCE) == ""
        clock.advance(60)
    assert world.marker == (report if place == "target" else None), "it would stop the other box"


@pytest.mark.parametrize("hours", [-9, 9])
async def test_a_copy_with_a_wrong_clock_can_be_made_to_serve(world, copied, clock, hours):
    clock.milliseconds += hours * 3_600_000
    with pytest.raises(Fenced):
        await world.watch.check_at_start()

    state = await read_marker(
        world.directory, world.box.settings.backup, KEY, world.box.clock.now()
    )
    claim(world.directory, state, [], clock, force=True)
    await world.start_again().check_at_start()

    assert world.marker.installation == world.own
    assert world.fenced == []


async def test_a_copy_that_does_not_reach_the_target_stays_unconfirmed(world, copied):
    world.shelf.trouble = "did not answer"
    await world.watch.check_at_start()
    assert world.looks == 1
    assert world.watch.prove(NONCE) == ""

    world.shelf.trouble = None
    await world.watch.check()
    assert len(world.fenced) == 1
    assert world.marker == copied


@pytest.mark.parametrize("told_by", ["target", "network"])
async def test_a_running_box_stops_when_its_place_is_taken(world, told_by):
    await world.watch.check_at_start()
    if told_by == "target":
        world.take_place()
    else:
        world.shelf.trouble = "nas.example did not answer"
        world.others = [world.later()]

    await world.watch.check()

    assert len(world.fenced) == 1
    assert await world.alerts() == [FENCED]


async def test_an_earlier_box_on_the_network_stops_nothing(world):
    world.others = [replace(world.later(), installation=replace(world.own, generation=0))]

    await world.watch.check()

    assert world.fenced == []


async def fail(*_):
    raise RuntimeError("mDNS")


async def hang(*_):
    await asyncio.Event().wait()


@pytest.mark.parametrize("told_by", ["target", "network"])
async def test_a_fault_of_the_one_does_not_hide_what_the_other_says(world, monkeypatch, told_by):
    if told_by == "target":
        monkeypatch.setattr(world.watch, "_look", fail)
        world.take_place()
    else:
        monkeypatch.setattr(world.watch, "_exchange", hang)
        world.others = [world.later()]

    with pytest.raises(Fenced):
        await world.watch.check_at_start()


@pytest.mark.parametrize("trouble", ["target", "network", "network that hangs"])
async def test_no_other_fault_keeps_a_box_from_serving(world, trouble, monkeypatch):
    monkeypatch.setattr("appliance.jobs.fence._START_SECONDS", 0.5)
    if trouble == "target":
        world.shelf.trouble = "nas.example did not answer"
    else:
        monkeypatch.setattr(world.watch, "_look", fail if trouble == "network" else hang)

    await world.watch.check_at_start()

    assert world.fenced == []
    assert await world.alerts() == []


async def test_a_box_whose_place_was_taken_does_not_start_until_it_takes_over(world, clock):
    world.take_place()
    with pytest.raises(Fenced):
        await world.watch.check_at_start()
    other = world.later().installation
    assert world.marker.installation == other, "nothing was written"
    assert await world.alerts() == [FENCED]
    world.shelf.trouble = "nas.example did not answer"

    with pytest.raises(Fenced, match=r"192\.168\.1\.9"):
        await world.start_again().check_at_start()
    assert await world.alerts() == [FENCED]

    renew_installation(world.directory.root, world.box.tokens, clock.now() - 60_000, confirmed=True)
    assert world.own > other
    await world.start_again().check_at_start()
    assert world.fenced == []
    assert await world.alerts() == []


async def test_it_is_checked_soon_then_every_minute_and_the_network_every_fifth_time(world):
    database = world.box.live.database
    assert await database.read(world.watch.job.next_due) == 0
    waits, looks = [], []
    for _ in range(8):
        await world.watch.check()
        due = await database.read(world.watch.job.next_due)
        waits.append(due - world.box.clock.now())
        looks.append(world.looks)
    assert waits == [FIRST_MS] * 2 + [EVERY_MS] * 6
    assert looks == [1, 2, 3, 3, 3, 4, 4, 4]


async def due(watch, box):
    """Return the seconds until a check is due, or None."""
    found = await box.live.database.read(watch.job.next_due)
    return None if found is None else (found - box.clock.now()) / 1000


@pytest.mark.parametrize(("has_network", "waits"), [(True, [10, 10, 300, 300]), (False, [None])])
async def test_a_box_without_a_target_looks_rarely_and_alone_never(
    tmp_path, clock, settings, has_network, waits
):
    keep_recovery_key(DataDirectory(tmp_path), KEY)
    looks = []

    async def look(*_):
        looks.append(1)
        return []

    async with opened_box(tmp_path, clock, settings) as box:
        watch = FenceWatch(box, look if has_network else None, print)
        assert await due(watch, box) <= 0
        for wait in waits:
            await watch.check()
            assert await due(watch, box) == wait
    assert len(looks) == (len(waits) if has_network else 0)


async def test_without_a_recovery_key_there_is_nothing_to_tell(world):
    (world.directory.root / "secrets" / "recovery.key").unlink()

    await world.watch.check()

    assert world.marker is None
    assert world.looks == 0
    assert world.watch.prove(NONCE) == ""


async def test_the_proof_for_another_box_holds_for_its_nonce_alone(world):
    proof = base64.b64decode(world.watch.prove(NONCE))

    assert unseal(proof, KEY, NONCE).installation == world.own
    assert unseal(proof, KEY, NONCE[::-1]) is None
