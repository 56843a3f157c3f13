"""Parts of the bench that are programs of their own: run, shown while they run, and read."""

import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from bench.children import BenchError

ROOT = Path(__file__).parents[1]
PATIENCE = 600  # seconds for any of them
CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
BINARY = ROOT / "dist" / "venuebox"
_WAITS = re.compile(r"(.+): median ([\d.]+) ms, slowest ([\d.]+) ms")
_MAY_MISS = (0, 1)  # a promise that is not kept is a figure too
_MEASURED = re.compile(r"([a-z ]+?) +([\d.]+) (MB|s)\b")

Row = tuple[str, str, str, bool]  # what, target, found, held


def dispatcher(*, full: bool) -> list[Row]:
    """The delivery engine: its table of targets."""
    argv = [sys.executable, "-m", "bench.dispatcher", *(["--full"] if full else [])]
    rows = []
    for line in _lines(argv, PATIENCE):
        if line.startswith(("holds ", "MISSED ")):
            held, _, rest = line.partition(" ")
            what, target, found = re.split(r"\s{2,}", rest.strip())
            rows.append((what, target, found, held == "holds"))
    return rows


def board() -> dict[str, tuple[float, float]]:
    """The evening board: median and slowest, in ms. Empty where there is no Chromium."""
    return _waits("portal.py")


def door_app() -> dict[str, tuple[float, float]]:
    """From the camera's picture to green: median and slowest, in ms. Empty as above."""
    return _waits("door_app.py")


def binary() -> dict[str, str]:
    """What the one file weighs, how soon it answers and what it holds idle; empty if not built."""
    if not BINARY.exists():
        print("dist/venuebox is not there: make binary", flush=True)
        return {}
    argv = [sys.executable, str(ROOT / "packaging" / "measure.py"), str(BINARY)]
    found = (_MEASURED.match(line) for line in _lines(argv, 180, _MAY_MISS))
    return {match[1]: f"{match[2]} {match[3]}" for match in found if match}


def _waits(script: str) -> dict[str, tuple[float, float]]:
    if not CHROMIUM.exists():
        print(f"left out, because there is no Chromium: {script}", flush=True)
        return {}
    found = (_WAITS.match(line) for line in _lines([sys.executable, f"bench/{script}"], 180))
    return {match[1]: (float(match[2]), float(match[3])) for match in found if match}


def _lines(argv: list[str], patience: int, fine: Collection[int] = (0,)) -> Iterator[str]:
    """What the program prints, each line shown at once; BenchError at a status not `fine`."""
    limited = ["timeout", "--foreground", "--kill-after=10", str(patience), *argv]
    with subprocess.Popen(limited, cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        for line in program.stdout:
            print(line, end="", flush=True)
            yield line.rstrip("\n")
    if program.returncode not in fine:
        raise BenchError(f"{' '.join(argv[1:])} ended with status {program.returncode}")
