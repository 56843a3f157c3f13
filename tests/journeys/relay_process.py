"""`venuebox relay serve` as a process, and a box that has joined it."""

import json
import subprocess
import threading
from pathlib import Path
from typing import Self

from tests.journeys.box_process import PROGRAM, READY_SECONDS, clean_environ, venuebox

PORTS = ("ssh", "tls", "http", "status")


class RelayProcess:
    """A relay. As a context manager, it starts the process and kills it.

    A restarted relay listens on the same ports.
    """

    def __init__(self, data: Path, address: str, *, log: Path, ports=None, wrapper=()):
        self.data, self.address, self.log, self.wrapper = data, address, log, wrapper
        self.ports = dict.fromkeys(PORTS, 0) | (ports or {})
        self.process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """Start it and wait for the `ready` line."""
        options = [word for name in PORTS for word in (f"--{name}-port", str(self.ports[name]))]
        argv = ("--data", self.data, "--address", self.address, "--host", self.address, *options)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.wrapper, PROGRAM, "relay", "serve", *map(str, argv)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                env=clean_environ(),
            )  # fmt: skip
        timer = threading.Timer(READY_SECONDS, self.process.kill)
        timer.start()
        first, *words = self.process.stdout.readline().split() or [""]
        timer.cancel()
        assert first == "ready", self.log.read_text("utf-8")
        self.ports = dict(zip(words[::2], map(int, words[1::2]), strict=True))

    def kill(self):
        """Kill it with SIGKILL if it runs."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def stop(self):
        """Stop it by SIGTERM; its exit status must be 0."""
        self.process.terminate()
        assert self.process.wait(READY_SECONDS) == 0, self.log.read_text("utf-8")
        self.process.stdout.close()
        self.process = None

    def invite(self, name):
        """Return a code for this name."""
        return venuebox("relay", "invite", name, data=self.data).strip()

    def names(self):
        """Return the enrolled names."""
        lines = venuebox("relay", "list", "--json", data=self.data).splitlines()
        return [json.loads(line)["name"] for line in lines]

    def revoke(self, name):
        """Revoke the box with this name."""
        venuebox("relay", "revoke", name, data=self.data)
