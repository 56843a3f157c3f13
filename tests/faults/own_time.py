"""A box whose machine's clock the test sets while it runs, and whose time server it plays.

libfaketime gives the process another wall clock and leaves its monotonic clocks alone, as a
step does. What the kernel says of its time server would be this machine's word: it is a file's.
"""

import sys
from pathlib import Path

from tests.journeys.box_process import BoxProcess

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
ROOT = Path(__file__).parents[2]


class OwnTime:
    """The clock of one box. `synchronised`: whether a time server vouches for it."""

    def __init__(self, folder):
        self._shift = folder / "shift"
        self._server = folder / "time-server"
        self.set("+0", synchronised=True)

    def set(self, shift, *, synchronised=False):
        """Set it off by so much from the right time: `+1y`, `-30d`, `+0`."""
        self._server.write_text("yes" if synchronised else "no")
        aside = self._shift.with_suffix(".new")
        aside.write_text(shift)
        aside.replace(self._shift)  # it is read at any moment

    def box(self, founded, folder, settings=None):
        """The box in front of this clock; ten minutes of doubt, as an owner has them."""
        [library] = LIBRARIES
        return BoxProcess(
            founded.data,
            log=folder / "box.log",
            wrapper=(sys.executable, __file__, str(self._server)),
            settings={
                "LD_PRELOAD": str(library),
                "FAKETIME_TIMESTAMP_FILE": str(self._shift),
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_NO_CACHE": "1",
                "PYTHONPATH": str(ROOT),
                "VENUEBOX_WEBHOOKS_CLOCK_GRACE_MINUTES": "10",
                **(settings or {}),
            },
        )


def run(server, argv):
    """`venuebox`, told by a file instead of the kernel whether its clock is synchronised."""
    from appliance import clock as clock_trust  # noqa: PLC0415 - changed before anybody has taken it over

    clock_trust.kernel_is_synchronised = lambda: Path(server).read_text() == "yes"
    from web.main import main  # noqa: PLC0415 - after it

    return main(argv)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[3:]))
