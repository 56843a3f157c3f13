"""The real program as a child process: started, waited for, spoken to, stopped."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

READY_SECONDS = 60.0
_ANY_CLOCK = "VENUEBOX_WEBHOOKS_CLOCK_GRACE_MINUTES"  # the machine may have no time server


class Serving:
    """`venuebox serve …` in a process of its own. Used as a context, it never outlives it."""

    def __init__(
        self, *argv: str, environ: dict[str, str] | None = None, files: int | None = None
    ) -> None:
        """Start; `wait_until_ready` or `status` says what became of it.

        It may open so many `files`, or as many as this process may.
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
            env={**inherited, _ANY_CLOCK: "0", **(environ or {})},
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it, however it is."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.address.rpartition(":")[2])

    def wait_until_ready(self) -> None:
        """Wait for the `ready` line, whose address is then `address`."""
        self._ready.wait(READY_SECONDS)
        if not self.address:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"it did not become ready: {self.complaint()}")

    def terminate(self) -> float:
        """Send SIGTERM and wait; the seconds it took to leave."""
        asked = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=15)
        return time.monotonic() - asked

    def complaint(self) -> str:
        """What it said on standard error until it ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            match = re.fullmatch(r"ready (http://\S+)\n", line)
            if match:
                self.address = match.group(1)
                self._ready.set()
        self._ready.set()
