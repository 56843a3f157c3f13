"""Eight terminals that scan: at a fixed rate whatever the box does, or as fast as it answers.

At a venue they are machines of their own. Here they share the box's processors, so they cost as
little as they can: a thread with a plain socket each, and the feeds read a few times a second.
"""

import json
import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

DEADLINE_S = 30
_EARS_REST_S = 0.05


@dataclass
class Terminals:
    """Their tokens, the box they ask, and what came of it: seconds from when each was due."""

    port: int
    tokens: Sequence[str]
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def paced(
        self, texts: Sequence[str], each_per_second: float, chance: random.Random, name: str
    ) -> None:
        """Each terminal scans so often, by the clock; its scans are named after `name`.

        Each has its own beat, so that they meet now and then, as at real doors. An answer that
        is late does not move the scans after it.
        """
        begun = time.perf_counter() + 0.2
        beat = 1 / each_per_second

        def dues() -> list[float]:
            first = begun + chance.random() * beat
            # A person is no metronome: somewhere within a third of the beat.
            return [first + (turn + chance.random() / 3) * beat for turn in range(len(texts))]

        self._all_scan(texts, name, [dues() for _ in self.tokens])

    def saturated(self, texts: Sequence[str], name: str) -> None:
        """Each terminal scans again as soon as it is answered."""
        self._all_scan(texts, name, [None for _ in self.tokens])

    def _all_scan(
        self, texts: Sequence[str], name: str, dues: Sequence[Sequence[float] | None]
    ) -> None:
        count = len(self.tokens)
        with ThreadPoolExecutor(count) as pool:
            for done in [
                pool.submit(self._scan_each, token, texts[n::count], f"{name}-{n}", dues[n])
                for n, token in enumerate(self.tokens)
            ]:
                done.result()

    def _scan_each(
        self, token: str, texts: Sequence[str], name: str, dues: Sequence[float] | None
    ) -> None:
        with socket.create_connection(("127.0.0.1", self.port), DEADLINE_S) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for number, text in enumerate(texts):
                due = dues[number] if dues else time.perf_counter()
                wait = due - time.perf_counter()
                if wait > 0:
                    time.sleep(wait)
                body = json.dumps({"scanId": f"{name}-{number}", "code": text}).encode()
                line.sendall(
                    _head("POST /terminal/v1/scans", self.port, token)
                    + f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n".encode()
                    + b"\r\n"
                    + body
                )
                answer = _read_answer(line)
                self.seconds.append(time.perf_counter() - due)
                if b'"result":"checked_in"' not in answer:
                    self.wrong.append(answer.decode(errors="replace")[:200])

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Each terminal hears the feed, as the door app does."""
        over = threading.Event()
        ears = [socket.create_connection(("127.0.0.1", self.port)) for _ in self.tokens]
        for ear, token in zip(ears, self.tokens, strict=True):
            ear.sendall(_head("GET /terminal/v1/events", self.port, token) + b"\r\n")
            ear.setblocking(False)
        hearing = threading.Thread(target=_hear, args=(ears, over))
        hearing.start()
        try:
            yield
        finally:
            over.set()
            hearing.join()


def _head(what: str, port: int, token: str) -> bytes:
    return (
        f"{what} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    ).encode()


def _read_answer(line: socket.socket) -> bytes:
    """Head and body of one answer."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += _some(line)
    head, _, body = got.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += _some(line)
    return body


def _some(line: socket.socket) -> bytes:
    if not (some := line.recv(65536)):
        raise ConnectionError("the box hung up on a terminal")
    return some


def _hear(ears: Sequence[socket.socket], over: threading.Event) -> None:
    """What the feeds say is taken from the lines, as a browser would, until it is over."""
    while not over.wait(_EARS_REST_S):
        for ear in ears:
            try:
                while ear.recv(1 << 20):
                    pass
            except BlockingIOError:
                continue
    for ear in ears:
        ear.close()
