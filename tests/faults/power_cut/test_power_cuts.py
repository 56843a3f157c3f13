"""Power cuts (F2, F4): nothing that was acknowledged is lost, and no table is held twice.

Each cut comes after a random number of writes, truncations and syncs, also while the box
recovers from the cut before and while a checkpoint runs. `make soak` makes 10,000 of them.
`POWER_CUT_SEED=n` repeats one run.
"""

import asyncio
import os
import random

import apsw
import pytest

from appliance.actions import grant
from appliance.actions.issue_terminal import issue_terminal
from appliance.clock import StoppedClock, newest_zone_database
from appliance.store.keys import list_keys
from appliance.store.session import session
from appliance.store.terminals import get_terminal
from appliance.store.watermark import count_missing_frames
from appliance.tokens import Tokens
from tests.builders import _add_key
from tests.conftest import furnished_template
from tests.faults.power_cut.beside import LOG, Beside
from tests.faults.power_cut.disk import Disk
from tests.faults.power_cut.house import House, complaints
from tests.faults.power_cut.vfs import ForgetfulVFS
from tests.soak.scale import FULL, Progress, tell

LIVES = 4
CUTS = 10_000 if FULL else 1_000
A_FRESH_START = 25  # cuts of one venue, before its file grows too big to be quick
MOST_CHANGES = 250


@pytest.fixture(scope="module")
def vfs():
    found = ForgetfulVFS()
    yield found
    found.unregister()


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    """A venue with a key, an endpoint and a terminal: its file, and who they are."""
    path = tmp_path_factory.mktemp("power") / "live.db"
    path.write_bytes((furnished_template() / "live.db").read_bytes())
    clock = StoppedClock("2026-11-21T19:00:00Z")
    with session(path, clock, Tokens(), newest_zone_database()) as tx:
        _add_key(tx, "svc_live_" + "0" * 48, ("reservations:write",), None)
        key = list_keys(tx)[0]
        terminal = get_terminal(tx, issue_terminal(tx, "Door")[0])
        tx.insert(
            "endpoint",
            {"id": tx.new_id(), "url": "https://partner.example/hook", "active": 1,
             "events": '["reservation.created","reservation.cancelled","reservation.checked_in"]',
             "created_at": tx.now, "secret": b"wrapped"},
        )  # fmt: skip
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.read_bytes(), key, terminal


def a_house(vfs, furnished, seed, **changes):
    file, key, terminal = furnished
    return House(vfs, {"live.db": file}, key, terminal, random.Random(seed), **changes)


def suffer(vfs, furnished, seed, cuts, progress=lambda _: None, **changes):
    """Complaints after so many cuts, and how many facts were at stake."""
    facts = 0
    house = a_house(vfs, furnished, seed, **changes)
    for cut in range(cuts):
        if cut % A_FRESH_START == A_FRESH_START - 1:
            facts += len(house.facts)
            house = a_house(vfs, furnished, f"{seed}/{cut}", **changes)
        asyncio.run(house.live_until_a_cut(house.draw.randint(0, MOST_CHANGES)))
        found = complaints(house)
        if found:
            return found, facts + len(house.facts)
        progress(f"{cut + 1} cuts, {facts + len(house.facts)} facts")
    return [], facts + len(house.facts)


@pytest.mark.parametrize("life", range(LIVES))
def test_nothing_acknowledged_is_lost_and_no_table_is_held_twice(vfs, furnished, life):
    seed = os.environ.get("POWER_CUT_SEED") or f"{random.SystemRandom().randrange(10**9)}"
    progress = Progress(f"power cuts, seed {seed}")

    found, facts = suffer(vfs, furnished, f"{seed}-{life}", CUTS // LIVES, progress)

    print(f"seed {seed}, life {life}: {CUTS // LIVES} cuts, {facts} acknowledged facts")
    tell("power cuts", CUTS // LIVES, seed=seed, found=found)
    assert found == [], f"POWER_CUT_SEED={seed} repeats it (life {life})"
    assert facts > CUTS // LIVES


def test_a_byte_that_changes_in_the_last_acknowledged_commit_after_a_cut_is_found(vfs, furnished):
    found = examined = 0
    house = a_house(vfs, furnished, "changed")
    for _ in range(A_FRESH_START):
        asyncio.run(house.live_until_a_cut(house.draw.randint(50, MOST_CHANGES)))
        mark, log = house.marks[-1], bytearray(house.files.get(LOG, b""))
        salt, frames = mark[:8], int.from_bytes(mark[8:12], "big")
        if frames == 0 or log[16:24] != salt:
            continue
        examined += 1
        at = 32 + frames * (24 + 4096) - house.draw.randint(1, 24 + 4096)
        log[at] ^= 1 << house.draw.randrange(8)

        house.vfs.disk = Disk(house.files | {LOG: bytes(log)})
        connection = house.open()
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        found += count_missing_frames(connection, Beside(house.vfs.disk, [mark])) > 0
        connection.close(force=True)

    assert found == examined > A_FRESH_START // 2


@pytest.mark.proves("I1", "G1")
def test_with_less_than_full_durability_the_same_cuts_lose_what_was_acknowledged(vfs, furnished):
    def weaken(connection):
        connection.execute("PRAGMA synchronous = NORMAL")

    found, _ = suffer(vfs, furnished, "weak", 200, prepare=weaken)

    assert any(complaint.startswith("I1") for complaint in found)


@pytest.mark.proves("I2", "G2")
def test_without_the_schemas_guards_and_the_writers_look_tables_are_held_twice(
    vfs, furnished, monkeypatch
):
    def disarm(connection):
        for name in ("reservation_hold_insert", "reservation_hold_update"):
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        connection.execute("DROP INDEX IF EXISTS reservation_hold")

    monkeypatch.setattr(grant, "is_held", lambda *_: False)

    found, _ = suffer(vfs, furnished, "disarmed", 20, prepare=disarm)

    assert any(complaint.startswith("I2") for complaint in found)


def test_the_disk_keeps_what_was_synced_and_may_lose_or_tear_the_rest():
    disk = Disk({"f": b"a" * 2048})
    file = disk.files["f"]
    file.write(0, b"b" * 512)
    file.sync()
    file.write(512, b"c" * 1536)
    file.truncate(1024)

    survivors = {disk.after_a_cut(random.Random(seed))["f"] for seed in range(200)}

    assert all(kept[:512] == b"b" * 512 for kept in survivors)
    assert {len(kept) for kept in survivors} == {1024, 2048}
    assert {bytes(kept[512:1024]) for kept in survivors} == {b"a" * 512, b"c" * 512}
    assert len(survivors) > 4
