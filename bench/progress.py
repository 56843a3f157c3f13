"""What the run tells the person who waits for it."""

import time

from bench.load import Load


class Progress:
    """Lines with the seconds since the start."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        """One line, at once."""
        print(f"[{time.monotonic() - self._begun:5.0f} s] {text}", flush=True)

    def rows(self, done: int, of: int) -> None:
        """A long fill, every tenth of it."""
        if done * 10 // of != (done - 1) * 10 // of:
            self.say(f"  {done:,} of {of:,} rows")

    def load(self, name: str, load: Load) -> None:
        """What one load showed."""
        self.say(
            f"  {name:<34}{load.rate:>8,.0f}/s  p50 {load.p50:.2f} ms"
            f"  p99 {load.p99:.2f} ms  CPU {load.cpu_us:.0f} µs"
        )
