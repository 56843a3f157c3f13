"""Fork boxes from a process that has imported everything: they start in a tenth of the time.

A forked box handles its files like any other; only the imports are done already. So a thousand
kills take minutes. `python -m tests.promises.nursery` is the parent process: its standard input is
a socket, which sends command lines with file descriptors for output and status.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.journeys.box_process import BoxProcess, clean_environ

ROOT = Path(__file__).parents[2]
LONGEST = 1 << 16


class ForkedBox(BoxProcess):
    """A forked box. Signals and files work as for a normal process."""

    def _launch(self, argv, log):
        return Newborn(["serve", *argv], clean_environ(self.settings), log)


class Newborn:
    """Like subprocess.Popen. Without a reported status, the process was killed."""

    def __init__(self, argv, environ, log):
        out, status = os.pipe(), os.pipe()
        message = json.dumps([argv, environ]).encode()
        nursery = open_nursery()
        socket.send_fds(nursery, [message], [out[1], log.fileno(), status[1]])
        for handle in (out[1], status[1]):
            os.close(handle)
        pid, [self._handle], _, _ = socket.recv_fds(nursery, 32, 1)
        self.pid = int(pid)
        self.stdout = os.fdopen(out[0], encoding="utf-8", errors="replace")
        self._status = status[0]
        self.returncode = None

    def send_signal(self, number):
        """Signal this process, not a later one with the same id."""
        signal.pidfd_send_signal(self._handle, number)

    def kill(self):
        """Kill it with SIGKILL."""
        with suppress(ProcessLookupError):
            self.send_signal(signal.SIGKILL)

    def poll(self):
        """Return its status, or None while it runs."""
        if self.returncode is None and select.select([self._handle], [], [], 0)[0]:
            self._read_status()
        return self.returncode

    def wait(self, seconds=None):
        """Wait until it ends; return its status."""
        if self.returncode is None:
            if not select.select([self._handle], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired("a box of the nursery", seconds)
            self._read_status()
        return self.returncode

    def _read_status(self):
        said = os.read(self._status, 1)
        self.returncode = said[0] if said else -signal.SIGKILL
        os.close(self._status)
        os.close(self._handle)


@cache
def open_nursery():
    """Start the parent process of this run; return its socket."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.promises.nursery"],
            cwd=ROOT,
            stdin=its,
            env=clean_environ(),
        )
    atexit.register(child.wait)
    atexit.register(ours.close)
    ours.recv(1)  # the imports are done
    return ours


def main():
    """Fork a box for each message, until the socket is closed."""
    import web.serve  # noqa: F401, PLC0415 - all that a box needs, once
    from web.main import main as venuebox  # noqa: PLC0415

    channel = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children need no wait()
    channel.send(b".")
    while True:
        message, files, _, _ = socket.recv_fds(channel, LONGEST, 3)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            be_a_box(channel, venuebox, *json.loads(message), files)
        handle = os.pidfd_open(pid)
        socket.send_fds(channel, [str(pid).encode()], [handle])
        for file in (*files, handle):
            os.close(file)


def be_a_box(channel, venuebox, argv, environ, files):
    """In the child: run the command line like a new process."""
    channel.detach()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for place, file in enumerate(files[:2], 1):
        os.dup2(file, place)
        os.close(file)
    # The old objects remember what their files could do, such as seek.
    sys.stdout, sys.stderr = (open(place, "w", closefd=False) for place in (1, 2))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environ)
    status = 70
    try:
        status = venuebox(argv)
        sys.stdout.flush()
    finally:
        os.write(files[2], bytes([status]))
        os._exit(status)


if __name__ == "__main__":
    main()
