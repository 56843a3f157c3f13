"""All scanners on one computer, started and stopped together."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from aiohttp import web

from appliance.clock import Clock
from appliance.core.errors import log_exception
from appliance.core.scanner_settings import ReaderSettings
from terminal_bridge.scanners.device import DeviceReader, open_keyboard, open_serial
from terminal_bridge.scanners.scanner import TROUBLE, Answer, Decide, Undecided, Watch
from terminal_bridge.scanners.tcp import TcpReader

REPEATED_WITHIN_SECONDS = 3.0


class Readers:
    """All configured scanners. If one scanner fails, the others keep working."""

    def __init__(
        self, settings: Sequence[ReaderSettings], decider: Callable[[ReaderSettings], Decide],
        clock: Clock, on_change: Callable[[Watch], None] = lambda _: None,
    ) -> None:  # fmt: skip
        """Set up the scanners without starting them.

        `decider` returns the function that decides the codes from one scanner. `on_change` is
        called in the event loop when a fault begins or ends.
        """
        self._on_change = on_change
        self.states = [Watch(each, clock, self._report) for each in settings]
        self._readers = [
            _make(watch, Once(_watched(decider(watch.settings), watch), clock))
            for watch in self.states
        ]

    async def start(self) -> None:
        """Start all scanners."""
        self._loop = asyncio.get_running_loop()
        for reader in self._readers:
            await reader.start()

    async def close(self) -> None:
        """Stop all scanners concurrently."""
        closing = (reader.close() for reader in self._readers)
        for result in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(result, Exception):
                log_exception("scanner: close", result)

    def _report(self, watch: Watch) -> None:
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._on_change, watch)


class Once:
    """Passes each code to `decide` at most once every 3 s.

    Guests hold a pass in front of the scanner until they see a reaction, so the scanner reads it
    several times. A repeated scan gets the first answer again, with `is_repeated` set.
    """

    def __init__(self, decide: Decide, clock: Clock) -> None:
        self._decide = decide
        self._clock = clock
        self._shown: dict[str, tuple[float, asyncio.Future[Answer]]] = {}

    async def __call__(self, code: str) -> Answer:
        """Return the answer to `code`.

        A grey answer is not reused: the next scan of the same code is decided again.
        """
        now = self._clock.monotonic()
        self._shown = {
            text: (at, decision)
            for text, (at, decision) in self._shown.items()
            if 0 <= now - at < REPEATED_WITHIN_SECONDS
        }
        is_repeated = code in self._shown
        if not is_repeated:
            self._shown[code] = now, asyncio.ensure_future(self._decide(code))
        answer = await asyncio.shield(self._shown[code][1])
        if answer.colour == "grey":
            self._shown.pop(code, None)
        return replace(answer, is_repeated=is_repeated)


def _watched(decide: Decide, watch: Watch) -> Decide:
    async def decided(code: str) -> Answer:
        try:
            answer = await decide(code)
        except Undecided as why:
            watch.decided(str(why))
            return Answer("grey", "error", sentence=str(why))
        except Exception as error:  # noqa: BLE001 - the guest gets a grey answer
            log_exception(f"scanner: {watch.settings.place}", error)
            return TROUBLE
        watch.decided(None)
        return answer

    return decided


def _make(watch: Watch, decide: Decide) -> TcpReader | DeviceReader:
    settings = watch.settings
    if settings.kind == "tcp":
        return TcpReader(settings, decide, watch)
    open_device = open_serial if settings.kind == "serial" else open_keyboard
    return DeviceReader(settings, open_device, decide, watch)


READERS: web.AppKey[Readers] = web.AppKey("readers", Readers)
