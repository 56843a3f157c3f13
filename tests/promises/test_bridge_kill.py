"""`kill -9` of bridge and box at random instants: no scan is lost or admitted twice.

40 kills in `make soak`, else 4. BRIDGE_KILLS chooses otherwise. KILL_SEED repeats a run.
"""

import asyncio
import os
import random
from collections import Counter

import aiohttp
import pytest

from tests.journeys.box_process import STOP_SECONDS, BoxProcess, found_box
from tests.journeys.bridge_process import BridgeProcess, Scanner, Wire, book, select
from tests.journeys.partner_side import calling
from tests.journeys.test_bridge import pair
from tests.soak.scale import FULL, tell

pytestmark = [pytest.mark.slow, pytest.mark.process]

KILLS = int(os.environ.get("BRIDGE_KILLS", "40" if FULL else "4"))
PARTIES = 150
IMPATIENT_SECONDS = 6.0  # after this time the guest shows the pass again
WAIT_SECONDS = 0.2  # while the bridge is not ready
PACE_SECONDS = 0.03  # times the number of parties: over 3 s, in which a repeated code is one scan


class Door:
    """Guests who arrive one by one and show the pass until there is a verdict."""

    def __init__(self, scanner, bridge, guests):
        self.letters = {reservation_id: "" for reservation_id, *_ in guests}
        self.over = False
        self._scanner = scanner
        self._bridge = bridge
        self._guests = guests

    async def work(self):
        """Scan all guests in turn, round after round, until stopped."""
        while not self.over:
            for reservation_id, access_code, text in self._guests:
                # The second time use the access code: the same text within 3 s is no new scan.
                code = access_code if self.letters[reservation_id] else text
                while not self.over:
                    down = self._bridge.is_down
                    letter = await self._scanner.show(code, IMPATIENT_SECONDS, down)
                    await asyncio.sleep(WAIT_SECONDS if down() else PACE_SECONDS)
                    if letter is not None:
                        self.letters[reservation_id] += letter
                        break


async def test_killing_bridge_or_box_loses_no_scan_and_admits_no_party_twice(tmp_path):
    seed = int(os.environ.get("KILL_SEED", random.randrange(10**6)))
    print(f"\nKILL_SEED={seed}")
    draw = random.Random(seed)
    founded = await asyncio.to_thread(found_box, tmp_path, PARTIES)
    box = BoxProcess(founded.data, log=tmp_path / "box.log")
    scanner = Scanner()
    await asyncio.to_thread(box.start)
    network = Wire(box)
    bridge = BridgeProcess(tmp_path / "bridge", scanner)
    kills = Counter()
    try:
        await network.mend()
        async with calling(box, founded, "live") as (partner, door), aiohttp.ClientSession() as s:
            guests = await book(partner, door, s, box, PARTIES)
        await pair(founded, box, bridge, network)
        await bridge.is_told("the box decides")
        crowd = Door(scanner, bridge, guests)
        working = asyncio.create_task(crowd.work())
        await kill_and_start_again(draw, bridge, box, kills)
        crowd.over = True
        await working

        told = bridge.complaints().count("the box decides")
        await asyncio.to_thread(bridge.kill)
        await asyncio.to_thread(bridge.start)
        await bridge.is_told("the box decides", times=told + 1)
        assert await asyncio.to_thread(bridge.stop) == 0
        assert await asyncio.to_thread(box.stop) < STOP_SECONDS
    finally:
        bridge.kill()
        box.kill()
        await network.close()
        scanner.close()

    check(crowd, bridge.spooled(), founded.data / "live.db")
    tell("kill -9 of bridge and box", kills.total(), seed=seed)
    assert min(kills[kind] for kind in ("BridgeProcess", "BoxProcess")) > 0


async def kill_and_start_again(draw, bridge, box, kills):
    """Kill the bridge, the box or both, repeatedly."""
    turns = [(bridge,), (box,)] + [
        draw.choice(((bridge,), (box,), (box, bridge))) for _ in range(KILLS - 2)
    ]
    for victims in turns:
        await asyncio.sleep(draw.uniform(0.2, 1.5))
        for victim in victims:
            kills[type(victim).__name__] += 1
            await asyncio.to_thread(victim.kill)
        await asyncio.sleep(draw.uniform(0.0, 1.0))
        for victim in victims:
            await asyncio.to_thread(victim.start)


def check(crowd, rows, live):
    """Check that verdicts, the bridge's spool and the box's rows agree."""
    shown = {scan_id for scan_id, result, *_ in rows if result is not None}
    logged = Counter(row[0] for row in select(live, "SELECT scan_id FROM scan_log"))
    letters = "".join(crowd.letters.values())
    print(f"{len(letters)} answers, {len(shown)} scans, {Counter(letters)}")
    assert shown - logged.keys() == set(), "a scan was lost"
    assert set(logged.values()) == {1}
    assert len(letters) <= len(shown)
    assert max(found.count("G") for found in crowd.letters.values()) == 1, "green twice"
    assert "R" not in letters
    admitted = select(live, "SELECT id, arrived FROM reservation WHERE arrived > 0")
    assert {arrived for _, arrived in admitted} == {1}, "a party was let in twice"
    greens = {name for name, found in crowd.letters.items() if "G" in found}
    assert greens <= {reservation_id for reservation_id, _ in admitted}
    assert [remark for *_, remark in rows if remark] == []
    assert len(greens) > 10, "hardly anybody came"
