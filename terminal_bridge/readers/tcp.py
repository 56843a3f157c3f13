"""A line reader on the network: a line in, a line out (docs/guide/scanners.md)."""

import asyncio
from contextlib import suppress

from appliance.accidents import log_accident
from appliance.settings_readers import ReaderSettings
from terminal_bridge.readers.answer import TROUBLE, Answer, Decide, line_of
from terminal_bridge.readers.connections import Connection, Connections
from terminal_bridge.readers.lines import PAUSE_SECONDS, Lines
from terminal_bridge.readers.state import Watch

IDLE_SECONDS = 600.0
_WRITTEN_WITHIN = 5.0
_ANSWER_PAUSE_SECONDS = 0.5
_FIRST_WAIT = 0.25
_LONGEST_WAIT = 5.0
_CHUNK = 4096
_FULL = b"GREY error - - Trop de connexions.\r\n"


class TcpReader:
    """Listens on the configured address, and again when that address comes back."""

    def __init__(
        self,
        settings: ReaderSettings,
        decide: Decide,
        watch: Watch,
        *,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._settings = settings
        self._decide = decide
        self._watch = watch
        self._idle_seconds = idle_seconds
        self._listening: asyncio.Task[None] | None = None
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._connections = Connections()

    async def start(self) -> None:
        """Begin; an address that cannot be had is tried again."""
        if not await self._listen():
            self._listening = asyncio.create_task(self._listen_later())

    async def close(self) -> None:
        """Stop at once; nobody is left talking."""
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _listen_later(self) -> None:
        wait = _FIRST_WAIT
        while True:
            await asyncio.sleep(wait)
            if await self._listen():
                return
            wait = min(wait * 2, _LONGEST_WAIT)

    async def _listen(self) -> bool:
        try:
            self._server = await asyncio.start_server(
                self._accept, self._settings.host, self._settings.port, limit=_CHUNK
            )
        except OSError as error:
            self._watch.disconnected(f"cannot be listened on ({error.strerror or error})")
            return False
        self._watch.connected()
        return True

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs is in a task
        self._serving.add(task)
        peer = writer.get_extra_info("peername")
        address = str(peer[0]) if peer else ""  # None: it has left already
        place = self._connections.enter(address, task, asyncio.get_running_loop().time())
        try:
            if place is None:
                writer.write(_FULL)
            else:
                await self._talk(reader, writer, place)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # it left, or says nothing any more
        except asyncio.CancelledError:
            pass  # the box stops, or another took its place; asyncio would log what tasks raise
        finally:
            self._serving.discard(task)
            if place is not None:
                self._connections.leave(place)
            writer.close()

    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: Connection
    ) -> None:
        lines, loop = Lines(), asyncio.get_running_loop()
        is_over = False
        while not is_over:
            patience = PAUSE_SECONDS if lines.is_waiting else self._idle_seconds
            try:
                async with asyncio.timeout(patience):
                    raw = await reader.read(_CHUNK)
            except TimeoutError:
                if not lines.is_waiting:
                    return
                codes = lines.pause()
            else:
                is_over = not raw  # which ends a code too: who sends one and says so may hear it
                codes = lines.pause() if is_over else lines.feed(raw)
                place.heard_at = loop.time()
            if lines.dropped:
                self._watch.drop(lines.dropped)
                await self._send(writer, TROUBLE)
            place.is_busy = True
            for code in codes:
                self._watch.read()
                answer = await self._ask(code)
                if self._settings.answers(answer.colour, is_repeated=answer.is_repeated):
                    await self._send(writer, answer)
            place.is_busy = False

    async def _ask(self, code: str) -> Answer:
        try:
            return await self._decide(code)
        except Exception as error:  # noqa: BLE001 - whoever asks gets the grey answer
            log_accident(f"reader {self._settings.place}", error)
            return TROUBLE

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        """The line, or the bytes that the settings have for this colour instead."""
        parts = self._settings.answer.get(answer.colour) or (
            line_of(answer, is_same=answer.is_repeated and not self._settings.repeat_answer),
        )
        for number, part in enumerate(parts):
            if number:
                await asyncio.sleep(_ANSWER_PAUSE_SECONDS)
            writer.write(part)
            async with asyncio.timeout(_WRITTEN_WITHIN):
                await writer.drain()
