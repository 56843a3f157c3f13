"""A serial or evdev scanner, read in a thread of its own: a driver may hang, the box may not."""

import asyncio
import errno
import os
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from appliance.accidents import log_accident
from appliance.settings_readers import ReaderSettings
from terminal_bridge.readers.evdev import Keyboard, open_keyboard
from terminal_bridge.readers.lines import PAUSE_SECONDS, Lines
from terminal_bridge.readers.reader import TROUBLE, Answer, Decide, Watch

if TYPE_CHECKING:
    import serial

ANSWER_PAUSE_SECONDS = 0.5
_WRITTEN_WITHIN = 1.0
_FIRST_WAIT = 0.25
_LONGEST_WAIT = 5.0
_DECIDED_WITHIN = 10.0  # seconds; a guest has walked away by then
_CLOSED_WITHIN = 1.0
_CHUNK = 4096
_PLUG_IN = "is not there: plug it in"
_GROUPS = "may not be opened: add this user to the groups dialout and input"
_HELD = "is held by another program: stop that one"
_WHY = {
    errno.ENOENT: _PLUG_IN,
    errno.ENODEV: _PLUG_IN,
    errno.ENXIO: _PLUG_IN,
    errno.EACCES: _GROUPS,
    errno.EPERM: _GROUPS,
    errno.EBUSY: _HELD,
    errno.EAGAIN: _HELD,
}


class SerialScanner(Lines):
    """A serial or USB-CDC scanner whose port is open and ours alone."""

    def __init__(self, port: "serial.Serial") -> None:
        super().__init__()
        self.port = port

    def fileno(self) -> int:
        """What to wait on."""
        return int(self.port.fileno())

    def close(self) -> None:
        """Let go of the port."""
        self.port.close()


Device = SerialScanner | Keyboard


def open_serial(settings: ReaderSettings) -> SerialScanner:
    """The scanner at `settings.device`, by its present meaning: a by-id path is a link."""
    port = _open(settings.device, settings.baud)
    try:
        port.reset_input_buffer()  # half a code of before the box started is none
    except Exception as error:
        port.close()
        raise OSError(errno.ENODEV, "the device is gone") from error
    return SerialScanner(port)


OPENERS: Mapping[str, Callable[[ReaderSettings], Device]] = {
    "serial": open_serial,
    "evdev": open_keyboard,
}


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
    ) -> None:
        self._settings = settings
        self._open = open_device
        self._decide = decide
        self._watch = watch
        self._stopping = threading.Event()
        self._asked: Future[Answer] = Future()
        self._relay: serial.Serial | None = None  # the port `answer_device`
        # A daemon: a driver that never returns does not keep the process from ending.
        name = f"reader {settings.place}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    async def start(self) -> None:
        """Begin, whether the device is there or not."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def close(self) -> None:
        """Stop within a second, whatever the driver does; a decision under way is finished."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join, _CLOSED_WITHIN)
        self._asked.cancel()

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
            except Exception as error:  # noqa: BLE001 - the other readers go on
                log_accident(f"reader {self._settings.place}", error)
                self._watch.disconnected(f"failed unexpectedly ({type(error).__name__})")
            self._stopping.wait(wait)
            wait = min(wait * 2, _LONGEST_WAIT)
        if self._relay is not None:
            self._relay.close()

    def _read(self, device: Device) -> None:
        """Until the device is gone (OSError) or the box stops."""
        while not self._stopping.is_set():
            ready, _, _ = select.select([device.fileno()], [], [], PAUSE_SECONDS)
            raw = os.read(device.fileno(), _CHUNK) if ready else b""
            if ready and not raw:
                raise OSError(errno.ENODEV, "the device is gone")
            codes = device.feed(raw) if ready else device.pause()
            if device.dropped:
                self._watch.drop(device.dropped)
            for code in codes:
                self._watch.read()
                answer = self._ask(code)
                if self._settings.answers(answer.colour, is_repeated=answer.is_repeated):
                    self._answer(device, self._settings.answer.get(answer.colour, ()))

    def _ask(self, code: str) -> Answer:
        deciding = self._decide(code)
        try:
            self._asked = asyncio.run_coroutine_threadsafe(deciding, self._loop)
            return self._asked.result(_DECIDED_WITHIN)
        except RuntimeError:  # the loop is closed
            deciding.close()
        except (TimeoutError, CancelledError):
            pass
        return TROUBLE

    def _answer(self, device: Device, parts: Sequence[bytes]) -> None:
        """To the scanner, or to `answer_device`: one that fails keeps nobody from scanning."""
        settings = self._settings
        if not any(parts):
            return
        if not settings.answer_device:
            if isinstance(device, SerialScanner):
                _write(device.port, parts)
            return
        try:
            if self._relay is None:
                self._relay = _open(settings.answer_device, settings.answer_baud)
            _write(self._relay, parts)
        except OSError as error:
            relay, self._relay = self._relay, None  # the next answer opens it again
            with suppress(OSError):
                if relay is not None:
                    relay.close()
            self._watch.decided(f"{settings.answer_device} {_describe(error)}")


def _open(path: str, baud: int) -> "serial.Serial":
    import serial  # noqa: PLC0415 - a box without scanners does not load it

    return serial.Serial(path, baud, timeout=0, write_timeout=_WRITTEN_WITHIN, exclusive=True)


def _write(port: "serial.Serial", parts: Sequence[bytes]) -> None:
    for number, part in enumerate(parts):
        if number:
            time.sleep(ANSWER_PAUSE_SECONDS)
        if part:
            port.write(part)


def _describe(error: OSError) -> str:
    if error.errno is None:
        return "does not answer: unplug it and plug it in again"
    return _WHY.get(error.errno) or f"does not work ({error.strerror or type(error).__name__})"
