"""Whether long tests run in full (`make soak`) or in short (`make test`)."""

import json
import os
import time
from pathlib import Path

FULL = os.environ.get("SOAK") == "1"


class Progress:
    """Prints the progress of a long test. Silent in a short run."""

    def __init__(self, what, every=15.0):
        self._what = what
        self._every = every
        self._begun = self._said = time.monotonic()

    def __call__(self, sentence):
        now = time.monotonic()
        if FULL and now - self._said >= self._every:
            self._said = now
            print(f"  {now - self._begun:5.0f} s  {self._what}: {sentence}", flush=True)


def tell(what, count, *, goal=0, seed="", found=()):
    """Report a row for the table of `make soak`: how many of what were done and wanted.

    `found` are the violations. Outside a soak, nothing is reported.
    """
    print(f"\n{what}: {count:,} of {max(goal, count):,}, seed {seed or '-'}", flush=True)
    file = os.environ.get("SOAK_FIGURES")
    if file:
        row = {"what": what, "count": count, "goal": max(goal, count), "seed": str(seed),
               "violations": [str(one) for one in found]}  # fmt: skip
        with Path(file).open("a", encoding="utf-8") as figures:
            figures.write(json.dumps(row) + "\n")
