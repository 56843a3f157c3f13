"""A box on a small machine whose clocks the test advances by days.

All of Python's clocks (wall clock, timers, uptime) read an offset from a file that is shared with
the test, so all advance by the same amount. The kernel's waits do not change, so each leap is
followed by a request, which wakes the event loop. Only the waits for other connections' commits
use the real clock: a leap would end them at once, and real time does not leap during a commit.
"""

import mmap
import resource
import struct
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from tests.journeys.box_process import BoxProcess

ROOT = Path(__file__).parents[2]
FILES = 256
MEMORY = 256 << 20  # bytes of private writable memory
SECONDS = struct.Struct("d")


class LeapingTime:
    """The clock of one box."""

    def __init__(self, folder):
        self._path = folder / "seconds"
        self.passed = 0.0
        self._path.write_bytes(SECONDS.pack(0.0))

    def leap(self, seconds):
        """Advance the clock."""
        self.passed += seconds
        with self._path.open("r+b") as file:
            file.write(SECONDS.pack(self.passed))

    def now(self):
        """Return the box's time in seconds since 1970."""
        return time.time() + self.passed

    @property
    def wrapper(self):
        """The command that runs `venuebox` with this clock and limits on files and memory."""
        return (sys.executable, __file__, str(self._path))

    @property
    def settings(self):
        """The environment variables for `wrapper`."""
        return {"PYTHONPATH": str(ROOT)}

    def box(self, founded, folder, settings=None):
        """Return a box process with this clock."""
        more = self.settings | (settings or {})
        return BoxProcess(founded.data, log=folder / "box.log", wrapper=self.wrapper, settings=more)


def let_pass(path):
    """Advance every clock of this process by the offset in the file."""
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
    """Run `venuebox` with these clocks; the kernel reports them as synchronised."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    real = SimpleNamespace(monotonic=time.monotonic, sleep=time.sleep)
    let_pass(Path(path))
    from appliance import clock as clock_trust  # noqa: PLC0415 - changed before anybody has taken it over
    from appliance.database import connection, vacuum  # noqa: PLC0415 - see above

    vacuum.time = connection.time = real
    clock_trust.kernel_is_synchronised = lambda: True
    from web.main import main  # noqa: PLC0415 - after it

    return main(argv)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[3:]))
