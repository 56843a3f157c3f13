"""A box on a small machine whose days the test lets pass in moments.

All of Python's clocks are those of a file that is shared with the test: wall clock, timers and
uptime go on by the same, as they do in a house where nobody touches the clock. What the kernel
waits for goes on as ever, so each leap is followed by a request, which wakes the event loop.
"""

import mmap
import resource
import struct
import sys
import time
from pathlib import Path

from tests.journeys.box_process import BoxProcess

ROOT = Path(__file__).parents[2]
FILES = 256
MEMORY = 256 << 20  # bytes: what a process may write to, of its own
SECONDS = struct.Struct("d")


class LeapingTime:
    """The time of one box."""

    def __init__(self, folder):
        self._path = folder / "seconds"
        self.passed = 0.0
        self._path.write_bytes(SECONDS.pack(0.0))

    def leap(self, seconds):
        """So much later than it was."""
        self.passed += seconds
        with self._path.open("r+b") as file:
            file.write(SECONDS.pack(self.passed))

    def now(self):
        """By the box's clock, in seconds since 1970."""
        return time.time() + self.passed

    @property
    def wrapper(self):
        """What runs `venuebox` in this time, held to so many files and so much memory."""
        return (sys.executable, __file__, str(self._path))

    @property
    def settings(self):
        """With which that finds what it needs."""
        return {"PYTHONPATH": str(ROOT)}

    def box(self, founded, folder, settings=None):
        """The box in this time."""
        more = self.settings | (settings or {})
        return BoxProcess(founded.data, log=folder / "box.log", wrapper=self.wrapper, settings=more)


def let_pass(path):
    """From now on every clock of this process is ahead by what stands in the file."""
    with path.open("rb") as file:
        shared = mmap.mmap(file.fileno(), SECONDS.size, access=mmap.ACCESS_READ)

    def ahead(clock, scale):
        def read(*which):
            return clock(*which) + scale(SECONDS.unpack_from(shared)[0])

        return read

    def nanoseconds(seconds):
        return int(seconds * 1_000_000_000)

    for name in ("time", "monotonic", "clock_gettime"):
        setattr(time, name, ahead(getattr(time, name), float))
    for name in ("time_ns", "monotonic_ns", "clock_gettime_ns"):
        setattr(time, name, ahead(getattr(time, name), nanoseconds))


def run(path, argv):
    """`venuebox` on such a machine, which a time server vouches for."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    let_pass(Path(path))
    from appliance import clock as clock_trust  # noqa: PLC0415 - changed before anybody has taken it over

    clock_trust.kernel_is_synchronised = lambda: True
    from web.main import main  # noqa: PLC0415 - after it

    return main(argv)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[3:]))
