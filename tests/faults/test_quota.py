"""A quota that is used up is a full disk, and no broken one: the box goes on and recovers (F6)."""

import errno
import os

import pytest

from appliance.actions.beat import beat
from appliance.clock import newest_zone_database
from appliance.errors import Trouble, Unavailable
from appliance.store.database import Database
from appliance.store.migrate import migrate
from appliance.store.session import session
from appliance.store.snapshot import copy_database
from appliance.tokens import Tokens
from appliance.upkeep.ballast import Ballast
from tests.faults.quota import used_up

MIB = 1 << 20


@pytest.fixture
def path(tmp_path, clock):
    migrate(tmp_path / "live.db", clock, create=True)
    return tmp_path / "live.db"


@pytest.fixture
def broken():
    return []


@pytest.fixture
async def database(path, clock, broken):
    opened = Database(path, clock, Tokens(), newest_zone_database(), broken.append)
    yield opened
    await opened.close()


async def test_commits_are_refused_the_reserve_is_asked_for_and_the_box_goes_on(database, broken):
    asked = []
    database.go_first(frozenset({beat}), lambda: asked.append(1) is None)

    with used_up(), pytest.raises(Unavailable):
        await database.write(beat)
    assert asked == [1]
    assert database.is_full
    database.set_full(full=False)

    await database.write(beat)
    assert broken == []


async def test_what_is_to_be_wiped_or_folded_waits_and_ends_no_service(database, broken):
    await database.write(beat)

    with used_up():
        assert await database.wipe() is False
        assert not database._folder._fold(passes=1)

    assert await database.wipe()
    await database.write(beat)
    assert broken == []


async def test_a_backup_says_that_there_is_no_room_and_not_that_the_database_is_damaged(
    database, path, tmp_path
):
    with used_up(), pytest.raises(OSError, match=r"no room for a copy of live\.db"):
        copy_database(path, tmp_path / "copy.db")


def test_an_upgrade_asks_for_room_and_not_for_the_last_good_backup(tmp_path, clock):
    with used_up(), pytest.raises(Trouble, match="has no room for it"):
        migrate(tmp_path / "new.db", clock, create=True)


async def test_a_command_beside_the_box_asks_for_room(database, path, clock):
    await database.write(beat)
    clock.advance(1)

    with (
        used_up(),
        pytest.raises(Trouble, match="has no room left"),
        session(path, clock, Tokens(), newest_zone_database()) as tx,
    ):
        beat(tx)


@pytest.mark.parametrize(("number", "has_room"), [(errno.EDQUOT, False), (None, True)])
def test_room_that_the_volume_has_is_not_the_boxs_before_a_quota_gives_it(
    tmp_path, monkeypatch, number, has_room
):
    ballast = Ballast(tmp_path, MIB)
    assert ballast.make()
    assert ballast.release()

    def take(handle, offset, size):
        if number is not None:
            raise OSError(number, os.strerror(number))
        os.ftruncate(handle, offset + size)

    monkeypatch.setattr(os, "posix_fallocate", take)

    assert ballast.has_room_for_all() is has_room
    assert list(tmp_path.iterdir()) == []
