"""The network fails under load and comes back, like an unplugged cable.

60 cuts in `make soak`, else 4. NETWORK_SEED repeats a run.
`unshare -n python -m tests.promises.test_network_cuts FOLDER CUTS SEED` runs a box with its
partners and receivers in a network namespace. It takes the only link down under load, for a
moment or longer than the callers' timeouts, and up again, so that packets are lost or late. It
prints the broken promises as JSON.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.journeys.partner_side import Caller
from tests.promises.checker import complaints
from tests.promises.conftest import own_network
from tests.promises.world import faulty_world
from tests.soak.scale import FULL, tell

ROOT = Path(__file__).parents[2]
CUTS = 60 if FULL else 4
SECONDS = 900.0 if FULL else 240.0
UNDER_LOAD = (0.1, 0.6)  # seconds before a cut
BRIEF, LONG = (0.05, 0.8), (2.0, 3.0)  # seconds that a cut lasts, alternating
TRIED = 6  # minimum of each kind of call
PATIENCE = aiohttp.ClientTimeout(total=1.5)  # of the clients under load


def link(state):
    """Set the link `up` or `down`."""
    subprocess.run(["ip", "link", "set", "lo", state], check=True)


async def be_cut_off(folder, cuts, seed):
    """Cut the network repeatedly; return the broken promises and the number of calls."""
    draw = random.Random(seed)
    link("up")
    async with faulty_world(folder, seed) as world, impatient(world) as (partner, door):
        for cut in range(cuts):
            working = asyncio.create_task(world.load.run(partner, door))
            await asyncio.sleep(draw.uniform(*UNDER_LOAD))
            await asyncio.to_thread(link, "down")
            await asyncio.sleep(draw.uniform(*(LONG if cut % 2 else BRIEF)))
            await asyncio.to_thread(link, "up")
            world.load.stop()
            await working
        await world.load_until(0.0, lambda: None, at_least=TRIED)  # on a busy machine
        await world.load.ask_again(world.partner, world.door)
        found = complaints(world.history, world.rows(), world.receiver.received)
        stopped = await asyncio.to_thread(world.box.stop)
        if stopped > 10:
            found.append(f"it took {stopped:.0f} s to leave")
        dead = [one["state"] for event in world.rows().events for one in event["deliveries"]]
        return {"found": found, "lost": world.history.lost_calls(), "dead": dead.count("dead"),
                **world.history.count()}  # fmt: skip


@asynccontextmanager
async def impatient(world):
    """Yield a world's partner and terminal, with short timeouts."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(timeout=PATIENCE, connector=connector) as session:
        yield [
            Caller(session, world.box, "live", tokens["live"])
            for tokens in (world.founded.keys, world.founded.terminals)
        ]


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.network
def test_acknowledged_changes_survive_repeated_network_failures(tmp_path):
    seed = int(os.environ.get("NETWORK_SEED", random.randrange(10**6)))
    program = [sys.executable, "-m", "tests.promises.test_network_cuts", tmp_path, CUTS, seed]

    done = subprocess.run(
        [*own_network(), *map(str, program)], cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=SECONDS,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    print(f"\n{said}")
    tell("network cuts", CUTS, seed=seed, found=said["found"])
    assert said["found"] == [], f"NETWORK_SEED={seed} repeats the draws"
    assert said["dead"] == 0
    assert said["lost"] > 0, "nobody noticed the cuts"
    assert min(said["bookings"], said["scans"]) >= TRIED, "hardly anything was tried"


if __name__ == "__main__":
    folder, cuts, seed = sys.argv[1:]
    print(json.dumps(asyncio.run(be_cut_off(Path(folder), int(cuts), int(seed)))))
