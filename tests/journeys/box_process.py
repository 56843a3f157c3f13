"""A box that the real program creates and serves: start, stop, kill and restart it."""

import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Self

from tests.app.processes import without_findings
from tests.ports import kept_port
from tests.soak.scale import FULL

PROGRAM = Path(sys.executable).with_name("venuebox")
READY_SECONDS = 60.0
STOP_SECONDS = 10.0 if FULL else 30.0  # the box promises 10; a busy machine may take longer
ENVIRONMENTS = ("live", "test")
ROOMY = {
    "VENUEBOX_API_RATE_LIMIT_PER_MINUTE": "10000000",
    "VENUEBOX_API_UNAUTHENTICATED_PER_MINUTE": "10000000",
    "VENUEBOX_DOOR_EARLY_MINUTES": "1440",  # admit guests at any time of day
}
# A zone in which it is noon now: no slot or evening ends while tests run.
ZONE = f"Etc/GMT{datetime.now(UTC).hour - 12:+d}"
VENUE = f"""
name = "Riad Atlas"
slug = "riad-atlas"
time_zone = "{ZONE}"
"""
TABLE = """
[[tables]]
number = "T{number}"
name = "Terrasse {number}"
capacity_min = 1
capacity_max = 6
minimum_spend = 500
"""
SLOTS = """
[[slots]]
name = "Dîner"
start = "19:30"
end = "22:00"

[[slots]]
name = "Soirée"
start = "22:00"
end = "01:00"
"""


@dataclass(frozen=True)
class Founded:
    """A data directory with its API keys and terminal tokens, by environment."""

    data: Path
    keys: dict[str, str]
    terminals: dict[str, str]


def venuebox(*argv, data=None):
    """Run a command and return its output. AssertionError with its message if it fails."""
    more = [] if data is None else ["--data", str(data)]
    done = subprocess.run(
        [PROGRAM, *argv, *more], capture_output=True, text=True, check=False, env=clean_environ()
    )
    assert done.returncode == 0, f"venuebox {argv[0]}: {done.stderr}"
    return done.stdout


def found_box(folder, tables=4):
    """Create a box in `folder`; boxes with as many tables have the same keys and tokens."""
    template = template_box(tables)
    shutil.copytree(template.data, folder / "box")
    return replace(template, data=folder / "box")


@cache
def template_box(tables):
    """Create a box by `init`, `key create` and `terminal create`, once a run."""
    folder = Path(tempfile.mkdtemp(prefix="venuebox-founded-"))
    atexit.register(shutil.rmtree, folder)
    file, data = folder / "venue.toml", folder / "box"
    numbered = "".join(TABLE.format(number=number) for number in range(1, tables + 1))
    file.write_text(VENUE + numbered + SLOTS, "utf-8")
    venuebox("init", "--venue", str(file), data=data)
    made = {"key": {}, "terminal": {}}
    for environment in ENVIRONMENTS:
        for kind, secrets in made.items():
            argv = (kind, "create", "--environment", environment, "--name", "T", "--json")
            created = json.loads(venuebox(*argv, data=data))
            secrets[environment] = created["key" if kind == "key" else "token"]
    return Founded(data, made["key"], made["terminal"])


def clean_environ(more=None):
    """Return the environment variables without VENUEBOX_ settings."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("VENUEBOX_")}
    return inherited | (more or {})


class BoxProcess:
    """`venuebox serve` as a process. As a context manager, it starts the process and kills it.

    A restarted box listens on the same port.
    """

    def __init__(self, data, *, log, settings=None, wrapper=()):
        """`log` receives standard error; `wrapper` is a command that runs the program."""
        self.data = data
        self.log = log
        self.settings = ROOMY | (settings or {})
        self.wrapper = wrapper
        self.port = 0
        self.process = None
        self.started = 0.0
        self.lines = []
        self._ready = threading.Event()  # also set when standard output is closed
        self._has_said_so = False
        self._reader = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    @property
    def address(self):
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self):
        """Its process id."""
        return self.process.pid

    def start(self):
        """Start it and wait for the `ready` line; return the seconds."""
        self.port = self.port or kept_port(self)
        self.spawn("--data", str(self.data), "--host", "127.0.0.1", "--port", str(self.port))
        return self.wait_until_ready()

    def spawn(self, *argv):
        """Start `venuebox serve …` without waiting."""
        self._ready.clear()
        self._has_said_so = False
        self.started = time.monotonic()
        with self.log.open("ab") as log:
            self.process = self._launch(argv, log)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _launch(self, argv, log):
        return subprocess.Popen(
            [*self.wrapper, PROGRAM, "serve", *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=clean_environ(self.settings),
        )

    def wait_until_ready(self):
        """Wait for the `ready` line; return the seconds since the start."""
        self._ready.wait(READY_SECONDS)
        if not self._has_said_so:  # a box that a test kills may be gone by now
            self.kill()
            raise AssertionError(f"it did not become ready: {self.complaints()}")
        return time.monotonic() - self.started

    def signal(self, number=signal.SIGTERM):
        """Send it a signal."""
        self.process.send_signal(number)

    def wait(self, seconds=60.0):
        """Wait until it ends; return its exit status."""
        status = self.process.wait(seconds)
        self._close()
        return status

    def stop(self):
        """Stop it by SIGTERM; return the seconds. Its exit status must be 0."""
        asked = time.monotonic()
        self.signal()
        status = self.wait()
        assert status == 0, self.complaints()
        return time.monotonic() - asked

    def kill(self):
        """Kill it with SIGKILL if it runs."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self._close()

    def complaints(self):
        """Return its standard error so far, filtered by `without_findings`."""
        said = self.log.read_text("utf-8", "replace") if self.log.exists() else ""
        return without_findings(said)

    def _close(self):
        self._reader.join()
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            match = re.fullmatch(r"ready http://[\d.]+:(\d+)\n", line)
            if match:
                self.port = int(match.group(1))
                self._has_said_so = True
                self._ready.set()
        self._ready.set()
