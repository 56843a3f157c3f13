"""Eight terminals that scan: at a fixed rate whatever the box does, or as fast as it answers."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass
class Terminals:
    """Their tokens, the box they ask, and what came of it: seconds from when each was due."""

    port: int
    tokens: Sequence[str]
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    _scans: int = 0
    _idle: dict[str, list["_Line"]] = field(default_factory=dict)

    async def paced(
        self, texts: Sequence[str], each_per_second: float, chance: random.Random
    ) -> None:
        """Each terminal scans so often, by the clock: who is late is not waited for.

        Each has its own beat, so that they meet now and then, as at real doors.
        """
        begun = time.perf_counter() + 0.2
        asked = []
        beats = [chance.random() / each_per_second for _ in self.tokens]
        for number, text in enumerate(texts):
            terminal = number % len(self.tokens)
            turn = number // len(self.tokens)
            # A person is no metronome: somewhere within a third of the beat.
            sway = chance.random() / each_per_second / 3
            asked.append((begun + beats[terminal] + turn / each_per_second + sway, terminal, text))
        tasks = []
        for due, terminal, text in sorted(asked):
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            tasks.append(asyncio.create_task(self._scan(self.tokens[terminal], text, due)))
        await asyncio.gather(*tasks)

    async def saturated(self, texts: Sequence[str]) -> None:
        """Each terminal scans again as soon as it is answered."""
        shares = [texts[n :: len(self.tokens)] for n in range(len(self.tokens))]
        await asyncio.gather(
            *(self._one_after_another(*each) for each in zip(self.tokens, shares, strict=True))
        )

    async def _one_after_another(self, token: str, texts: Sequence[str]) -> None:
        for text in texts:
            await self._scan(token, text, time.perf_counter())

    async def _scan(self, token: str, text: str, due: float) -> None:
        self._scans += 1
        body = json.dumps({"scanId": f"s{self._scans}", "code": text}).encode()
        lines = self._idle.setdefault(token, [])
        line = lines.pop() if lines else await _Line.to(self.port, token)
        answer = await line.ask(body)
        self.seconds.append(time.perf_counter() - due)
        lines.append(line)
        if b'"result":"checked_in"' not in answer:
            self.wrong.append(answer.decode(errors="replace")[:200])

    async def listen(self) -> list[asyncio.Task[None]]:
        """Each terminal hears the feed, as the door app does; until the tasks are cancelled."""
        return [asyncio.create_task(_hear(self.port, token)) for token in self.tokens]

    def close(self) -> None:
        """Hang up."""
        for lines in self._idle.values():
            for line in lines:
                line.writer.close()


@dataclass
class _Line:
    """A kept connection, on which one scan is asked at a time."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes

    @classmethod
    async def to(cls, port: int, token: str) -> "_Line":
        head = (
            f"POST /terminal/v1/scans HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: "
        )
        return cls(*await asyncio.open_connection("127.0.0.1", port), head.encode())

    async def ask(self, body: bytes) -> bytes:
        self.writer.write(b"%s%d\r\n\r\n%s" % (self.head, len(body), body))
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        return await self.reader.readexactly(int(length))


async def _hear(port: int, token: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET /terminal/v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {token}\r\n\r\n".encode()
    )
    with suppress(asyncio.CancelledError):
        while await reader.read(65536):
            pass
    writer.close()
