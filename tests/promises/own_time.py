"""A box whose wall clock and clock synchronisation the test sets while it runs.

libfaketime changes the wall clock and leaves the monotonic clocks alone, like a clock step. Whether
the clock is synchronised is read from a file instead of the kernel.
"""

import select
import sys
import time
from pathlib import Path

from tests.journeys.box_process import BoxProcess

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
ROOT = Path(__file__).parents[2]


class OwnTime:
    """The clock of one box. `synchronised`: whether the kernel reports it as synchronised."""

    def __init__(self, folder):
        self._shift = folder / "shift"
        self._server = folder / "time-server"
        self.set("+0", synchronised=True)

    def set(self, shift, *, synchronised=False):
        """Set the offset from the right time: `+1y`, `-30d`, `+0`."""
        self._server.write_text("yes" if synchronised else "no")
        aside = self._shift.with_suffix(".new")
        aside.write_text(shift)
        aside.replace(self._shift)  # atomically: it may be read at any moment

    @property
    def wrapper(self):
        """What to put before a command, so that it runs with `run`."""
        return (sys.executable, __file__, str(self._server))

    def box(self, founded, folder, settings=None):
        """Return a box process with this clock, and the default clock grace of ten minutes."""
        [library] = LIBRARIES
        return BoxProcess(
            founded.data,
            log=folder / "box.log",
            wrapper=self.wrapper,
            settings={
                "LD_PRELOAD": str(library),
                "FAKETIME_TIMESTAMP_FILE": str(self._shift),
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_NO_CACHE": "1",
                "PYTHONPATH": str(ROOT),
                **(settings or {}),
            },
        )


def run(server, argv):
    """Run `venuebox`; a file tells whether the clock is synchronised."""
    from appliance import clock as clock_trust  # noqa: PLC0415 - changed before anybody has taken it over

    # libfaketime 0.9.10 makes every time.sleep raise EINVAL, which a waiting SQLite would meet.
    time.sleep = lambda seconds: select.select((), (), (), seconds)
    clock_trust.kernel_is_synchronised = lambda: Path(server).read_text() == "yes"
    from web.main import main  # noqa: PLC0415 - after it

    return main(argv)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[3:]))
