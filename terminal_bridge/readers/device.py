"""A reader with a thread of its own: drivers may hang in open, write or close, the box may not."""

import asyncio
import errno
import os
import select
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import closing, suppress
from typing import Protocol

from appliance.accidents import log_accident
from appliance.settings_readers import ReaderSettings
from terminal_bridge.readers.answer import TROUBLE, Answer, Decide
from terminal_bridge.readers.lines import PAUSE_SECONDS
from terminal_bridge.readers.state import Watch

_FIRST_WAIT = 0.25
_LONGEST_WAIT = 5.0
_DECIDED_WITHIN = 10.0  # seconds; a guest has walked away by then
_CLOSED_WITHIN = 1.0
_CHUNK = 4096
_WHY = {
    errno.ENOENT: "is not there: plug it in",
    errno.ENODEV: "is not there: plug it in",
    errno.ENXIO: "is not there: plug it in",
    errno.EACCES: "may not be opened: add this user to the groups dialout and input",
    errno.EPERM: "may not be opened: add this user to the groups dialout and input",
    errno.EBUSY: "is held by another program: stop that one",
    errno.EAGAIN: "is held by another program: stop that one",
}


class Device(Protocol):
    """An open scanner."""

    @property
    def dropped(self) -> str:
        """Why what came last was no code; empty when it was one."""
        ...

    def fileno(self) -> int:
        """What to wait on."""
        ...

    def read(self, raw: bytes) -> list[str]:
        """The codes that these bytes complete."""
        ...

    def pause(self) -> list[str]:
        """The code that silence completes."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether silence would complete one."""
        ...

    def answer(self, parts: Sequence[bytes]) -> None:
        """Send these bytes to the device."""
        ...

    def close(self) -> None:
        """Let go of the device."""
        ...


class Relay(Protocol):
    """Something that is answered and reads nothing."""

    def answer(self, parts: Sequence[bytes]) -> None:
        """Send these bytes; OSError when it is not there."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class DeviceReader:
    """Opens the device whenever it is there, reads codes, has them decided, answers.

    One code after the other: what is scanned meanwhile waits in the kernel's buffer.
    """

    def __init__(
        self,
        settings: ReaderSettings,
        open_device: Callable[[ReaderSettings], Device],
        decide: Decide,
        watch: Watch,
        relay: Relay | None = None,
    ) -> None:
        """`relay` is answered instead of the device, where it is one of its own."""
        self._settings = settings
        self._relay = relay
        self._open = open_device
        self._decide = decide
        self._watch = watch
        self._stopping = threading.Event()
        self._ended = asyncio.Event()
        self._deciding: set[asyncio.Task[None]] = set()
        self._wake, self._waker = -1, -1

    async def start(self) -> None:
        """Begin, whether the device is there or not."""
        self._loop = asyncio.get_running_loop()
        self._wake, self._waker = os.pipe()
        # A daemon: a driver that never comes back does not keep the process from ending.
        threading.Thread(
            target=self._run, name=f"reader {self._settings.place}", daemon=True
        ).start()

    async def close(self) -> None:
        """Stop within a second, whatever the driver does; a decision under way is finished."""
        self._stopping.set()
        with suppress(OSError):
            os.write(self._waker, b"!")
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSED_WITHIN):
                await self._ended.wait()
        for task in self._deciding:
            task.cancel()
        await asyncio.gather(*self._deciding, return_exceptions=True)

    def _run(self) -> None:
        wait = _FIRST_WAIT
        while not self._stopping.is_set():
            try:
                with closing(self._open(self._settings)) as device:
                    self._watch.connected()
                    wait = _FIRST_WAIT
                    self._read(device)
            except OSError as error:
                self._watch.disconnected(_describe(error))
            except Exception as error:  # noqa: BLE001 - one reader's accident is nobody else's
                log_accident(f"reader {self._settings.place}", error)
                self._watch.disconnected(f"failed unexpectedly ({type(error).__name__})")
            self._stopping.wait(wait)
            wait = min(wait * 2, _LONGEST_WAIT)
        if self._relay is not None:
            self._relay.close()
        os.close(self._wake)
        os.close(self._waker)
        with suppress(RuntimeError):  # the loop did not wait for us
            self._loop.call_soon_threadsafe(self._ended.set)

    def _read(self, device: Device) -> None:
        """Until the device is gone (OSError) or the box stops."""
        while not self._stopping.is_set():
            patience = PAUSE_SECONDS if device.is_waiting else None
            ready, _, _ = select.select([device.fileno(), self._wake], [], [], patience)
            if device.fileno() in ready:
                raw = os.read(device.fileno(), _CHUNK)
                if not raw:
                    raise OSError(errno.ENODEV, "the device is gone")
                codes = device.read(raw)
            else:
                codes = [] if ready else device.pause()
            if device.dropped:
                self._watch.drop(device.dropped)
            for code in codes:
                self._watch.read()
                answer = self._ask(code)
                if not self._settings.answers(answer.colour, is_repeated=answer.is_repeated):
                    continue
                parts = self._settings.answer.get(answer.colour, ())
                if self._relay is None:
                    device.answer(parts)
                else:
                    self._drive(self._relay, parts)

    def _drive(self, relay: Relay, parts: Sequence[bytes]) -> None:
        """A relay that fails keeps nobody from scanning."""
        try:
            relay.answer(parts)
        except OSError as error:
            self._watch.decided(f"{self._settings.answer_device} {_describe(error)}")

    def _ask(self, code: str) -> Answer:
        asked: Future[Answer] = Future()
        try:
            self._loop.call_soon_threadsafe(self._begin, code, asked)
            return asked.result(_DECIDED_WITHIN)
        except (RuntimeError, TimeoutError, CancelledError):
            return TROUBLE

    def _begin(self, code: str, asked: "Future[Answer]") -> None:
        task = self._loop.create_task(self._finish(code, asked))
        self._deciding.add(task)
        task.add_done_callback(self._deciding.discard)

    async def _finish(self, code: str, asked: "Future[Answer]") -> None:
        try:
            answer = await self._decide(code)
        except Exception as error:  # noqa: BLE001 - the guest gets the grey answer
            log_accident(f"reader {self._settings.place}", error)
            answer = TROUBLE
        except asyncio.CancelledError:
            asked.cancel()
            raise
        asked.set_result(answer)


def _describe(error: OSError) -> str:
    if error.errno is None:
        return "does not answer: unplug it and plug it in again"
    return _WHY.get(error.errno) or f"does not work ({error.strerror or type(error).__name__})"
