"""The door in full: 5,000 scans from eight terminals at once, and a million forged passes.

`python -m tests.soak.door [SEED]`: exit status 0 when it held.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import apsw

from appliance.door.guest_pass import decode_passes
from tests.app.terminal_bridge.many_doors import complaints, expect, storm
from tests.app.terminal_bridge.mutations import mutate, raw_of
from tests.journeys.box_process import BoxProcess, found_box
from tests.soak.scale import tell

SCANS, PASSES, PART = 5_000, 1_000_000, 5_000


def main():
    seed = int(sys.argv[1]) if sys.argv[1:] else random.randrange(10**6)
    with tempfile.TemporaryDirectory(prefix="venuebox-soak-") as folder:
        found, texts, keys = asyncio.run(storm_a_box(Path(folder), SCANS, seed))
    tell("scans at eight doors", SCANS, seed=seed, found=found)
    accepted = forge(texts, keys, PASSES, seed)
    tell("tampered passes", PASSES, seed=seed, found=accepted)
    for wrong in (*found[:20], *accepted[:20]):
        print(f"WRONG: {wrong}")
    return 1 if found or accepted else 0


async def storm_a_box(folder, scans, seed):
    """Return the errors found, and passes of the box with the public keys of its terminals."""
    crowd = expect(found_box(folder, tables=24).data, max(1, scans * 2 // 5), seed)
    with BoxProcess(crowd.data, log=folder / "box.log") as box:
        evening = await storm(crowd, box.address, scans, seed)
        found = complaints(crowd, evening)
        box.stop()
    if box.complaints():
        found.append(box.complaints())
    keys = read_public_keys(crowd.data)
    return found, [party.text for party in crowd.parties[:500]], keys


def read_public_keys(data):
    connection = apsw.Connection(str(data / "live.db"), flags=apsw.SQLITE_OPEN_READONLY)
    keys = [row[0] for row in connection.execute("SELECT public_key FROM signing_key")]
    connection.close()
    return keys


def forge(texts, keys, many, seed):
    """Return the forged passes that were accepted. Raises if the reader fails."""
    begun = time.monotonic()
    parts = [(texts, keys, min(PART, many - n), f"{seed} {n}") for n in range(0, many, PART)]
    accepted, verified = [], 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for part, (wrong, checked) in enumerate(pool.map(_forge_some, parts)):
            accepted += wrong
            verified += checked
            if part % 20 == 19:
                print(f"  {(part + 1) * PART} passes, {verified} signatures checked", flush=True)
    took = time.monotonic() - begun
    print(f"{many} passes tampered with, {verified} signatures checked in {took:.0f} s", flush=True)
    return accepted


def _forge_some(part):
    texts, keys, many, seed = part
    chance = random.Random(seed)
    genuine = {raw_of(text)[:20] for text in texts}
    accepted, verified = [], 0
    for _ in range(many):
        text = mutate(chance, texts)
        for read in decode_passes(text):
            verified += 1
            if any(read.is_signed_by(key) for key in keys) and read.signed not in genuine:
                accepted.append(text)
    return accepted, verified


if __name__ == "__main__":
    sys.exit(main())
