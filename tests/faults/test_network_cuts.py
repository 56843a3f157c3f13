"""The network goes away under load and comes back, as when a cable is pulled (F18, F22).

60 cuts in `make soak`, 6 in `make test`; NETWORK_SEED repeats the draws of a run.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.faults.network_cuts import TRIED
from tests.soak.scale import FULL, tell

ROOT = Path(__file__).parents[2]
CUTS = 60 if FULL else 6
PATIENCE = 900.0 if FULL else 240.0


@cache
def own_network():
    """The command that gives a process a network of its own, or None where nobody may have one."""
    for command in (["unshare", "-n"], ["unshare", "-rn"]):
        if shutil.which("unshare") is None or shutil.which("ip") is None:
            break
        tried = [*command, "ip", "link", "set", "lo", "up"]
        if subprocess.run(tried, capture_output=True, check=False).returncode == 0:
            return command
    return None


if own_network() is not None:

    @pytest.mark.proves("I1", "I3", "I6")
    def test_what_was_acknowledged_survives_a_network_that_is_cut_again_and_again(tmp_path):
        seed = int(os.environ.get("NETWORK_SEED", random.randrange(10**6)))
        program = [sys.executable, "-m", "tests.faults.network_cuts", tmp_path, CUTS, seed]

        done = subprocess.run(
            [*own_network(), *map(str, program)], cwd=ROOT, capture_output=True, text=True,
            check=False, timeout=PATIENCE,
        )  # fmt: skip

        assert done.returncode == 0, done.stderr[-3000:]
        said = json.loads(done.stdout.splitlines()[-1])
        print(f"\n{said}")
        tell("network cuts", CUTS, seed=seed, found=said["found"])
        assert said["found"] == [], f"NETWORK_SEED={seed} repeats the draws"
        assert said["dead"] == 0
        assert said["lost"] > 0, "nobody noticed the cuts"
        assert min(said["bookings"], said["scans"]) >= TRIED, "hardly anything was tried"
