"""Where the one-file program begins: as `venuebox`, and never longer than the file it began as."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with_the_first_process() -> None:
    """A start has two processes: the first waits to clean up. Who kills it means both."""
    first = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != first:  # it was killed in between
        sys.exit(1)


if __name__ == "__main__":
    end_with_the_first_process()
    from web.main import main

    sys.exit(main())
