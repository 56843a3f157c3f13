"""Boxes that start in a tenth of the time: forked from a process that has imported everything.

What a start does with its files is the same as ever; only Python's imports are done already. A
thousand kills fit into minutes that way. `python -m tests.faults.nursery` is that process: on its
standard input, a socket, it is handed command lines, and files for output and status of each.
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
    """A box from the nursery. SIGKILL, SIGTERM and its files know no difference."""

    def _launch(self, argv, log):
        return Newborn(["serve", *argv], clean_environ(self.settings), log)


class Newborn:
    """As subprocess.Popen. The status of a process that could not say it is that of a kill."""

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
        """To this process alone, whoever has its number by now."""
        signal.pidfd_send_signal(self._handle, number)

    def kill(self):
        """End it at once."""
        with suppress(ProcessLookupError):
            self.send_signal(signal.SIGKILL)

    def poll(self):
        """Its status, or None while it runs."""
        if self.returncode is None and select.select([self._handle], [], [], 0)[0]:
            self._read_status()
        return self.returncode

    def wait(self, seconds=None):
        """Its status, once it has ended."""
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
    """The socket of this run's nursery, which ends with us."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery"], cwd=ROOT, stdin=its, env=clean_environ()
        )
    atexit.register(child.wait)
    atexit.register(ours.close)
    ours.recv(1)  # everything is imported
    return ours


def main():
    """Fork a box for each message, until nobody is left to send one."""
    import web.serve  # noqa: F401, PLC0415 - all that a box needs, once
    from web.main import main as venuebox  # noqa: PLC0415

    channel = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for them
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
    """In the child: as if the program had just been started."""
    channel.detach()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for place, file in enumerate(files[:2], 1):
        os.dup2(file, place)
        os.close(file)
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
