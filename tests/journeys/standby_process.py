"""A standby that the real program runs, and the server that admits it."""

import re
import subprocess
import time

from tests.journeys.box_process import PROGRAM, READY_SECONDS, BoxProcess, clean_environ

SSH_KEY = r"(ssh-ed25519 .*)"


class StandbyProcess(BoxProcess):
    """`venuebox standby` as a process, which becomes the box."""

    def _launch(self, argv, log):
        return subprocess.Popen(
            [*self.wrapper, PROGRAM, "standby", *argv], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=log, text=True, env=clean_environ(self.settings),
        )  # fmt: skip

    def told(self, pattern):
        """Return the first group of the first line of output that matches."""
        found = (re.fullmatch(pattern, line) for line in self.lines)
        return next((match[1] for match in found if match), None)

    def wait_until_told(self, pattern):
        """Wait for such a line; return its first group."""
        until = time.monotonic() + READY_SECONDS
        while not (found := self.told(pattern)):
            assert time.monotonic() < until, self.complaints()
            time.sleep(0.05)
        return found


def admit(server, line):
    with server.authorized.open("a") as file:
        file.write(f"{line}\n")
