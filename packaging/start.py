"""Where the one-file program begins: as `venuebox`, and never longer than the file it began as."""

import ctypes
import os
import signal
import stat
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def end_with_the_first_process() -> None:
    """A start has two processes: the first waits to clean up. Who kills it means both."""
    first = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != first:  # it was killed in between
        sys.exit(1)


def open_to_all() -> None:
    """As the place is (runtime_place.c): root goes on as another user, who reads it too."""
    unpacked = Path(__file__).parent
    if unpacked.parent.stat().st_mode & stat.S_IXOTH:
        for path in (unpacked, *unpacked.rglob("*")):
            path.chmod(0o755)


if __name__ == "__main__":
    end_with_the_first_process()
    open_to_all()
    from web.main import main

    sys.exit(main())
