"""Start, await and stop the real program as a child process."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

READY_SECONDS = 60.0


def without_findings(said: str) -> str:
    """Remove the findings of checks: the box of a test has no mail server and no public address."""
    return re.sub(r"^\S+ web\.monitoring: checks: \w+ is \w+\n", "", said, flags=re.MULTILINE)


class Serving:
    """`venuebox serve …` as a child process; a context manager that kills it at the end."""

    def __init__(
        self, *argv: str, environ: dict[str, str] | None = None, files: int | None = None
    ) -> None:
        """Start the process. Then call `wait_until_ready` or `status`.

        `files` limits the number of open files; the default is the limit of this process.
        """
        self.lines: list[str] = []
        self.address = ""
        self._ready = threading.Event()
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("VENUEBOX_")}
        few = [] if files is None else ["prlimit", f"--nofile={files}:{files}"]
        self.process = subprocess.Popen(
            [*few, sys.executable, "-m", "web.main", "serve", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env={**inherited, **(environ or {})},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        try:
            self.wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the process."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    @property
    def port(self) -> int:
        """Return the port for plain http."""
        return int(self.address.rpartition(":")[2])

    def wait_until_ready(self) -> None:
        """Wait for the `ready` line and set `address` to its URL."""
        self._ready.wait(READY_SECONDS)
        if not self.address:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"it did not become ready: {self.complaint()}")

    def terminate(self) -> float:
        """Send SIGTERM, wait, and return the seconds until the exit."""
        asked = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        return time.monotonic() - asked

    def complaint(self) -> str:
        """Wait for the exit and return standard error, filtered by `without_findings`."""
        assert self.process.stderr is not None
        return without_findings(self.process.stderr.read())

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            match = re.fullmatch(r"ready (http://\S+)\n", line)
            if match:
                self.address = match.group(1)
                self._ready.set()
        self._ready.set()
