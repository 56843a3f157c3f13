"""Network scanners: each sends codes as lines over TCP (docs/guide/scanners.md)."""

import asyncio
from collections import Counter
from dataclasses import dataclass

from appliance.core.scanner_settings import ReaderSettings
from terminal_bridge.scanners.scanner import (
    ANSWER_PAUSE_SECONDS,
    FIRST_WAIT,
    LONGEST_WAIT,
    PAUSE_SECONDS,
    TROUBLE,
    Answer,
    Decide,
    Lines,
    Watch,
    line_of,
)

MOST_CONNECTIONS = 16
MOST_PER_ADDRESS = 8  # a serial device server may connect eight scanners from one IP address
IDLE_SECONDS = 600.0
_WRITE_SECONDS = 5.0
_CHUNK = 4096
_FULL = b"GREY error - - Trop de connexions.\r\n"


@dataclass(eq=False, slots=True)
class _Connection:
    """A connection, which `task` serves.

    `received_at` is when the latest input arrived, by the event loop's clock. `is_busy` is true
    while codes are decided and answered.
    """

    address: str
    task: asyncio.Task[None]
    received_at: float
    is_busy: bool = False


class TcpReader:
    """Serves the scanners that connect to the configured address."""

    def __init__(self, settings: ReaderSettings, decide: Decide, watch: Watch) -> None:
        self._settings, self._decide, self._watch = settings, decide, watch
        self._listening: asyncio.Task[None] | None = None
        self._connections: set[_Connection] = set()

    async def start(self) -> None:
        """Start listening. If the address cannot be bound, retry in the background."""
        server = await self._listen()
        self._listening = asyncio.create_task(self._serve(server))

    async def close(self) -> None:
        """Stop listening and close every connection immediately."""
        tasks = [each.task for each in self._connections]
        tasks += [self._listening] if self._listening else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, server: asyncio.Server | None) -> None:
        wait = FIRST_WAIT
        while server is None:
            await asyncio.sleep(wait)
            server = await self._listen()
            wait = min(wait * 2, LONGEST_WAIT)
        try:
            await asyncio.Event().wait()
        finally:
            server.close()

    async def _listen(self) -> asyncio.Server | None:
        try:
            server = await asyncio.start_server(
                self._accept, self._settings.host, self._settings.port, limit=_CHUNK
            )
        except OSError as error:
            self._watch.disconnected(f"cannot listen ({error.strerror or error})")
            return None
        self._watch.connected()
        return server

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a running coroutine has a task
        peer = writer.get_extra_info("peername")
        # There is no peer name if the scanner is already disconnected.
        address = str(peer[0]) if peer else ""
        connection = _Connection(address, task, asyncio.get_running_loop().time())
        try:
            if self._make_room(address):
                self._connections.add(connection)
                await self._talk(reader, writer, connection)
            else:
                writer.write(_FULL)
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass  # the scanner disconnected or was evicted, which asyncio would log as an error
        finally:
            self._connections.discard(connection)
            writer.close()

    def _make_room(self, address: str) -> bool:
        """Return whether there is room for another connection. Evict an idle connection if needed.

        At the limit per address, evict a connection from that address. At the total limit, evict a
        connection from the address with the most connections. In both cases, evict the one that
        has been idle longest.
        """
        held = Counter(each.address for each in self._connections)
        if held[address] >= MOST_PER_ADDRESS:
            crowded = {address}
        elif held.total() >= MOST_CONNECTIONS:
            crowded = {each for each, count in held.items() if count == max(held.values())}
        else:
            return True
        idle = [each for each in self._connections if each.address in crowded and not each.is_busy]
        if not idle:
            return False
        evicted = min(idle, key=lambda each: each.received_at)
        self._connections.discard(evicted)
        evicted.task.cancel()
        return True

    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _Connection
    ) -> None:
        lines, loop = Lines(), asyncio.get_running_loop()
        is_over = False
        while not is_over:
            seconds = PAUSE_SECONDS if lines.is_waiting else IDLE_SECONDS
            try:
                async with asyncio.timeout(seconds):
                    raw = await reader.read(_CHUNK)
            except TimeoutError:
                if not lines.is_waiting:
                    return
                codes = lines.pause()
            else:
                is_over = not raw  # at the end of input, the last code needs no line ending
                codes = lines.pause() if is_over else lines.feed(raw)
                connection.received_at = loop.time()
            if lines.dropped:
                self._watch.drop(lines.dropped)
                await self._send(writer, TROUBLE)
            connection.is_busy = True
            for code in codes:
                self._watch.read()
                answer = await self._decide(code)
                if self._settings.answers(answer.colour, is_repeated=answer.is_repeated):
                    await self._send(writer, answer)
            connection.is_busy = False

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        """Send the bytes configured for the answer's colour, or else the answer line."""
        parts = self._settings.answer.get(answer.colour) or (
            line_of(answer, is_same=answer.is_repeated and not self._settings.repeat_answer),
        )
        for number, part in enumerate(parts):
            if number:
                await asyncio.sleep(ANSWER_PAUSE_SECONDS)
            writer.write(part)
            async with asyncio.timeout(_WRITE_SECONDS):
                await writer.drain()
