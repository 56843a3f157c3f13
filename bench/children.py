"""The processes a run starts, each ended by its id when the run ends."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


class BenchError(Exception):
    """The run cannot be trusted: what was wrong, in one sentence."""


@dataclass(frozen=True)
class Child:
    """A server of this run, on a port of its own."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        """Its base address."""
        return f"http://127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """What the process has used so far, all threads together, to a hundredth."""
        after_name = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2]
        user, system = after_name.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> float:
        """What it holds in memory now, without the files that are mapped."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) / 1024

    def last_words(self) -> str:
        """The end of what it printed, for an error message."""
        return self.log.read_text(errors="replace")[-2000:]


@dataclass
class Children:
    """Starts servers and ends them all at the close of the block."""

    logs: Path
    alive: list[Child] = field(default_factory=list)

    def start(
        self,
        name: str,
        argv: Sequence[str],
        port: int,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """Starts a server without waiting for it."""
        log = self.logs / f"{name}-{port}.log"
        with log.open("ab") as out:
            process = subprocess.Popen(
                argv,
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
            )
        child = Child(name, port, process, log)
        self.alive.append(child)
        return child

    def stop(self, child: Child, patience: float = 15.0) -> None:
        """Asks it to end; after `patience` seconds kills it, which is an error."""
        self.alive.remove(child)
        child.process.send_signal(signal.SIGTERM)
        try:
            child.process.wait(patience)
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()
            raise BenchError(
                f"{child.name} did not end within {patience:.0f} s of SIGTERM"
            ) from None

    @contextlib.contextmanager
    def all_ended(self) -> Iterator["Children"]:
        """Whatever happens inside, no process of this run outlives the block."""
        try:
            yield self
        finally:
            for child in list(self.alive):
                with contextlib.suppress(BenchError):
                    self.stop(child, patience=10.0)


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(
    child: Child,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    """One request on a connection of its own: status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", child.port, timeout=10)
    try:
        connection.request(
            method, path, body, {"Content-Type": "application/json", **(headers or {})}
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def wait_until_answers(
    child: Child, path: str, headers: Mapping[str, str] | None = None, patience: float = 30.0
) -> None:
    """Returns at the first 200 of `path`."""
    deadline, last = time.monotonic() + patience, "none"
    while time.monotonic() < deadline:
        if child.process.poll() is not None:
            raise BenchError(f"{child.name} ended before it answered:\n{child.last_words()}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, body = ask(child, "GET", path, headers=headers)
            if status == http.client.OK:
                return
            last = f"{status} {body[:300].decode(errors='replace')}"
        time.sleep(0.003)
    raise BenchError(
        f"{child.name} gave no 200 to {path} in {patience:.0f} s; its last answer: {last}\n"
        f"{child.last_words()}"
    )
