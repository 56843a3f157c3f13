"""A sync that fails (F5): nothing is acknowledged any more, and nothing that was is lost.

The disk fails once or for good, at a random sync: of a commit, a checkpoint, an end or a start.
The box ends, in good order or not; it starts again on the same machine, whose page cache still
shows what the disk forgot; it works on; and then the power goes. 3,000 such lives in `make soak`;
FAILING_SYNC_SEED repeats a run.
"""

import asyncio
import os
import random

import pytest

from tests.faults.power_cut.failing import FailingDisk, FailingHouse, FailingVFS
from tests.faults.power_cut.house import complaints
from tests.faults.power_cut.test_power_cuts import furnished  # noqa: F401 - a fixture
from tests.soak.scale import FULL, Progress, tell

LIVES = 3_000 if FULL else 60
OF_ONE_HOUSE = 20
MOST_SYNCS = 60
MOST_CHANGES = 150
MOST_STARTS = 4


@pytest.fixture(scope="module")
def vfs():
    found = FailingVFS()
    yield found
    found.unregister()


def a_house(vfs, venue, seed, **changes):
    file, key, terminal = venue
    return FailingHouse(vfs, {"live.db": file}, key, terminal, random.Random(seed), **changes)


def suffer(vfs, venue, seed, lives, progress=lambda _: None, **changes):
    """What was wrong after so many lives with one failure each, and the houses that lived."""
    houses = []
    for life in range(lives):
        if life % OF_ONE_HOUSE == 0:
            houses.append(a_house(vfs, venue, f"{seed}/{life}", **changes))
        house = houses[-1]
        asyncio.run(live_through_a_failure(house))
        found = complaints(house)
        if house.granted_after_it:
            found.append("F5: something was granted after the disk had failed")
        if found:
            return found, houses
        progress(f"{life + 1} failures")
    return [], houses


async def live_through_a_failure(house):
    """Fail, start again on the same disk until it serves, and lose the power at work."""
    draw = house.draw
    disk = FailingDisk(house.files, draw, draw.randint(0, MOST_SYNCS), for_good=draw.random() < 0.3)
    await house.live(disk)
    for start in range(MOST_STARTS):
        if start == MOST_STARTS - 1:
            disk.mend()  # a disk that fails for good is put into another machine
        refused = house.refused_starts
        disk.lose_power_after(draw.randint(0, MOST_CHANGES))
        await house.live(disk)
        if house.refused_starts == refused or disk.is_dead:
            break
    house.files = disk.after_a_cut(draw)


@pytest.mark.proves("I1", "G1")
def test_after_a_sync_that_failed_nothing_acknowledged_is_ever_lost(vfs, furnished):  # noqa: F811
    seed = os.environ.get("FAILING_SYNC_SEED") or f"{random.SystemRandom().randrange(10**9)}"

    found, houses = suffer(vfs, furnished, seed, LIVES, Progress(f"failing syncs, seed {seed}"))

    facts = sum(len(house.facts) for house in houses)
    failures = sum(house.failures for house in houses)
    refused = sum(house.refused_starts for house in houses)
    print(f"\n{facts} facts, {failures} ends of service, {refused} starts refused")
    tell("syncs that fail", LIVES, seed=seed, found=found)
    assert found == [], f"FAILING_SYNC_SEED={seed} repeats it"
    assert facts > LIVES
    assert failures > LIVES / 4


def test_a_box_that_trusted_what_it_reads_of_its_log_would_lose_what_was_acknowledged(
    vfs,
    furnished,  # noqa: F811
):
    found, _ = suffer(vfs, furnished, "trusting", 400, trusts_no_log=False)

    assert found != []
