"""Whether tests that take their time run in full (`make soak`) or short (`make test`)."""

import os
import time

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
