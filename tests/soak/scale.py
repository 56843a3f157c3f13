"""Whether tests that take their time run in full (`make soak`) or short (`make test`)."""

import json
import os
import time
from pathlib import Path

FULL = os.environ.get("SOAK") == "1"


class Progress:
    """Says now and then how far a long test is; silent in a short run."""

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
    """A row of the table of `make soak`: so many of what, of as many as were wanted.

    `found` are the violations. Without a soak around it, nobody reads it.
    """
    print(f"\n{what}: {count:,} of {max(goal, count):,}, seed {seed or '-'}", flush=True)
    file = os.environ.get("SOAK_FIGURES")
    if file:
        row = {"what": what, "count": count, "goal": max(goal, count), "seed": str(seed),
               "violations": [str(one) for one in found]}  # fmt: skip
        with Path(file).open("a", encoding="utf-8") as figures:
            figures.write(json.dumps(row) + "\n")
