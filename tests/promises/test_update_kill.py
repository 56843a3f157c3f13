"""An update that is killed at any moment leaves the old program or the new one, complete.

50 kills in `make soak`, else 5. UPDATE_SEED repeats a run.
`python -m tests.promises.test_update_kill RELEASE KEY PROGRAM DATA` runs one update, with the real
backup and the real trial; instead of restarting a service, it does nothing.
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
from tests.journeys.box_process import PROGRAM
from tests.soak.scale import FULL, tell
from tests.unit.commands.conftest import VENUE
from web.main import main

KILLS = 50 if FULL else 5
ROOT = Path(__file__).parents[2]
SCRIPT = '#!/bin/sh\n# {version}\nexec {program} "$@"\n'


def run(release, key, program, data):
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
    service = Service(lambda: None, lambda: None, lambda: True, watch_seconds=0.1)
    with Path(release).open("rb") as file:
        directory = DataDirectory(Path(data))
        progress = Progress(directory, SystemClock())
        update(file, public, Path(program), directory.root, service, "1.0", progress)


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.promises.test_update_kill", *map(str, words)],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.process
def test_a_killed_update_leaves_one_whole_program(tmp_path):
    venue, data, program = tmp_path / "venue.toml", tmp_path / "box", tmp_path / "bin" / "venuebox"
    venue.write_text(VENUE, "utf-8")
    assert main(["init", "--venue", str(venue), "--data", str(data)], {}) == 0
    old, new = (SCRIPT.format(version=v, program=PROGRAM).encode() for v in ("1.0", "1.1"))
    key = Ed25519PrivateKey.generate()
    make_release = run_path(str(ROOT / "packaging" / "release.py"))["make_release"]
    release = tmp_path / "a.release"
    release.write_bytes(make_release(new, key, version="1.1"))
    program.parent.mkdir()
    seed = os.environ.get("UPDATE_SEED") or str(random.SystemRandom().randrange(10**9))
    draw, seconds, found = random.Random(seed), 0.0, []
    words = (release, key.public_key().public_bytes_raw().hex(), program, data)
    for number in range(KILLS + 1):
        program.write_bytes(old)
        program.chmod(0o755)
        began = time.monotonic()
        process = start(*words)
        if number == 0:  # undisturbed, to know how long an update takes
            assert process.wait(300) == 0
            assert program.read_bytes() == new
            seconds = time.monotonic() - began
            continue
        time.sleep(draw.uniform(0, 1.1 * seconds))
        process.kill()
        process.wait()
        if program.read_bytes() not in {old, new}:
            found.append(f"kill {number}: a program that is neither the old nor the new one")
        subprocess.run([program, "version"], check=True, stdout=subprocess.DEVNULL)
    assert main(["doctor", "--data", str(data)], {}) == 0
    tell("kills in updates", KILLS, goal=KILLS, seed=seed, found=found)
    assert found == []


if __name__ == "__main__":
    run(*sys.argv[1:])
