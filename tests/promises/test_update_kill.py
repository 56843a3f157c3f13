"""An update that is killed at any moment leaves the old program or the new one, complete.

50 kills in `make soak`, else 3. UPDATE_SEED repeats a run.
`python -m tests.promises.test_update_kill RELEASE KEY PLACE DATA` runs one update, with the real
backup; instead of restarting a service, it does nothing.
"""

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from runpy import run_path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from appliance.clock import SystemClock
from appliance.commands.update import Progress, Service, update
from appliance.core.data_directory import DataDirectory
from appliance.program import switch
from tests.journeys.box_process import PROGRAM
from tests.soak.scale import FULL, tell
from tests.unit.commands.conftest import VENUE
from web.main import main

KILLS = 50 if FULL else 3
ROOT = Path(__file__).parents[2]
# As a single file it copies itself slowly, like the built one.
SCRIPT = """#!/bin/sh
# {version}
test "$1" = service || exec {program} "$@"
rm -rf {place}/{version}* && mkdir {place}/{version}.part && sleep 0.2
cp "$0" {place}/{version}.part && mv {place}/{version}.part {place}/{version}
echo {place}/{version}
"""


def run(release, key, place, data):
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
    service = Service(lambda: None, lambda: None, lambda: True, watch_seconds=0.1)
    with Path(release).open("rb") as file:
        directory = DataDirectory(Path(data))
        progress = Progress(directory, SystemClock())
        update(file, public, Path(place), directory.root, service, "1.0", progress)


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.promises.test_update_kill", *map(str, words)],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.process
def test_a_killed_update_leaves_one_complete_program(tmp_path):
    venue, data, place = tmp_path / "venue.toml", tmp_path / "box", tmp_path / "opt"
    venue.write_text(VENUE, "utf-8")
    assert main(["init", "--venue", str(venue), "--data", str(data)], {}) == 0
    old, new = (SCRIPT.format(version=v, program=PROGRAM, place=place) for v in ("1.0", "1.1"))
    key = Ed25519PrivateKey.generate()
    make_release = run_path(str(ROOT / "packaging" / "release.py"))["make_release"]
    release = tmp_path / "a.release"
    release.write_bytes(make_release(new.encode(), key, version="1.1"))
    (place / "1.0").mkdir(parents=True)
    (place / "1.0" / "venuebox").write_text(old)
    (place / "1.0" / "venuebox").chmod(0o755)
    program = place / "current" / "venuebox"
    seed = os.environ.get("UPDATE_SEED") or str(random.SystemRandom().randrange(10**9))
    draw, seconds, found = random.Random(seed), 0.0, []
    words = (release, key.public_key().public_bytes_raw().hex(), place, data)
    for number in range(KILLS + 1):
        switch(place / "1.0", place)
        began = time.monotonic()
        process = start(*words)
        if number == 0:  # without a kill, to measure the duration of an update
            assert process.wait(300) == 0
            assert program.read_text() == new
            seconds = time.monotonic() - began
            continue
        time.sleep(draw.uniform(0, 1.1 * seconds))
        process.kill()
        process.wait()
        if program.read_text() not in {old, new}:
            found.append(f"kill {number}: a program that is neither the old nor the new one")
        subprocess.run([program, "version"], check=True, stdout=subprocess.DEVNULL)
    assert main(["doctor", "--data", str(data)], {}) == 0
    tell("kills in updates", KILLS, goal=KILLS, seed=seed, found=found)
    assert found == []


if __name__ == "__main__":
    run(*sys.argv[1:])
