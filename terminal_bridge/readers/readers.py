"""The readers of one computer, started together and stopped together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from appliance.accidents import log_accident
from appliance.clock import Clock
from appliance.settings_readers import ReaderSettings
from terminal_bridge.readers.answer import Answer, Decide
from terminal_bridge.readers.device import DeviceReader
from terminal_bridge.readers.once import Once
from terminal_bridge.readers.state import ReaderState, Watch
from terminal_bridge.readers.tcp import TcpReader


class Undecided(Exception):
    """A scan cannot be decided, for a reason that whoever runs the box can mend."""


class Reader(Protocol):
    """Something that reads codes by itself."""

    async def start(self) -> None:
        """Begin."""
        ...

    async def close(self) -> None:
        """Stop within about a second."""
        ...


class Readers:
    """Every configured reader. The trouble of one touches no other and nothing else."""

    def __init__(
        self,
        settings: Sequence[ReaderSettings],
        decider: Callable[[ReaderSettings], Decide],
        clock: Clock,
        on_change: Callable[[ReaderState], None] = lambda _: None,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`decider` gives, for each reader, what decides its codes.

        `on_change` is called in the loop when a reader's trouble begins or ends; `before` is
        awaited before the first of them starts.
        """
        self._before = before
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_change = on_change
        self._readers: list[Reader] = []
        self._watches: list[Watch] = []
        for one in settings:
            watch = Watch(one, clock, self._tell)
            decide = Once(_watched(decider(one), watch), clock)
            self._watches.append(watch)
            self._readers.append(_make(one, decide, watch))

    @property
    def states(self) -> list[ReaderState]:
        """How each of them is, in the order of the settings."""
        return [watch.state for watch in self._watches]

    async def start(self) -> None:
        """Start all."""
        self._loop = asyncio.get_running_loop()
        if self._before is not None:
            await self._before()
        for reader in self._readers:
            await reader.start()

    async def close(self) -> None:
        """Stop all at once."""
        ends = await asyncio.gather(
            *(reader.close() for reader in self._readers), return_exceptions=True
        )
        for end in ends:
            if isinstance(end, Exception):
                log_accident("stopping a reader", end)

    def _tell(self, state: ReaderState) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is gone, and nobody wants to know
                self._loop.call_soon_threadsafe(self._on_change, state)


def _watched(decide: Decide, watch: Watch) -> Decide:
    async def decided(code: str) -> Answer:
        try:
            answer = await decide(code)
        except Undecided as why:
            watch.decided(str(why))
            return Answer("grey", "error", sentence=str(why))
        watch.decided(None)
        return answer

    return decided


def _make(settings: ReaderSettings, decide: Decide, watch: Watch) -> Reader:
    """Each kind loads what it needs: a box without scanners loads none of it."""
    if settings.kind == "tcp":
        return TcpReader(settings, decide, watch)
    from terminal_bridge.readers.serial_port import SerialRelay, open_serial  # noqa: PLC0415 - as said

    relay = SerialRelay(settings) if settings.answer_device else None
    if settings.kind == "serial":
        return DeviceReader(settings, open_serial, decide, watch, relay)
    from terminal_bridge.readers.evdev import open_keyboard  # noqa: PLC0415 - as said

    return DeviceReader(settings, open_keyboard, decide, watch, relay)
