"""Serial and evdev scanners, each read in its own thread.

An evdev scanner acts as a keyboard. The kernel reports the keys that the scanner presses, not
characters, so this computer's keyboard layout has no effect. The layout set in the scanner does
matter: for the same text, a scanner set to French presses different keys than a scanner set to US.
The keys are therefore decoded with both layouts.
"""

import asyncio
import errno
import fcntl
import logging
import os
import re
import select
import stat
import struct
import termios
import threading
import time
import tty
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import closing, suppress
from dataclasses import dataclass

from appliance.core.errors import log_exception
from appliance.core.scanner_settings import ReaderSettings
from appliance.door.guest_pass import resembles_pass
from appliance.door.scan import classify
from terminal_bridge.scanners.scanner import (
    ANSWER_PAUSE_SECONDS,
    CODE_MAX,
    FIRST_WAIT,
    LONGEST_WAIT,
    PAUSE_SECONDS,
    SHORTEST_BY_PAUSE,
    TROUBLE,
    Answer,
    Decide,
    Lines,
    Watch,
)

log = logging.getLogger(__name__)

ENTER, KEYPAD_ENTER, TAB, CAPS_LOCK = 28, 96, 15, 58
ENDS = frozenset({ENTER, KEYPAD_ENTER, TAB})
SHIFTS = frozenset({42, 54})
ALTS = frozenset({56, 100})
# Keys without a character: Ctrl, Meta, the locks and Escape.
SILENT = frozenset({29, 97, 125, 126, 69, 70, 1, *SHIFTS, *ALTS})
KEYPAD_DIGITS: Mapping[int, str] = dict(
    zip((71, 72, 73, 75, 76, 77, 79, 80, 81, 82), "7894561230", strict=True)
)
_KEYPAD: Mapping[int, str] = {**KEYPAD_DIGITS, 55: "*", 74: "-", 78: "+", 83: ".", 98: "/"}

# Stricter than the box's own pattern, which also matches a pass decoded with the wrong layout.
_PASS = re.compile(r"SVC1[A-Z2-7]{135}")
_Layout = Mapping[int, tuple[str, str]]


def _layout(*rows: tuple[int, str, str]) -> _Layout:
    """Build a layout from rows of (code of the first key, characters, characters with Shift)."""
    keypad = {code: (sign, sign) for code, sign in _KEYPAD.items()}
    keys = {
        first + n: pair
        for first, plain, shifted in rows
        for n, pair in enumerate(zip(plain, shifted, strict=True))
    }
    return keypad | keys


_US = _layout(
    (2, "1234567890-=", "!@#$%^&*()_+"),
    (16, "qwertyuiop[]", "QWERTYUIOP{}"),
    (30, "asdfghjkl;'`", 'ASDFGHJKL:"~'),
    (43, "\\zxcvbnm,./", "|ZXCVBNM<>?"),
    (57, " ", " "),
    (86, "\\", "|"),
)
_FRENCH = _layout(
    (2, "&é\"'(-è_çà)=", "1234567890°+"),
    (16, "azertyuiop^$", "AZERTYUIOP¨£"),
    (30, "qsdfghjklmù²", "QSDFGHJKLM%²"),
    (43, "*wxcvbn,;:!", "µWXCVBN?./§"),
    (57, " ", " "),
    (86, "<", ">"),
)


@dataclass(frozen=True, slots=True)
class Stroke:
    """A key press, or a character that was typed with Alt.

    Scanners can type a character by holding Alt while they type its number on the keypad. In that
    case, `text` is the character.
    """

    code: int
    shift: bool = False
    caps: bool = False
    text: str = ""


def read_strokes(strokes: Sequence[Stroke]) -> str:
    """Decode key presses with the layout that yields a venuebox code.

    If there is none, use the layout that yields a damaged pass, or else the US layout.
    """
    # In the French layout of Windows, Caps Lock also shifts the digit keys. The third entry is for
    # scanners that are set to this layout.
    layouts = ((_US, False), (_FRENCH, False), (_FRENCH, True))
    texts = ["".join(_decode(stroke, *layout) for stroke in strokes) for layout in layouts]
    whole = (text for text in texts if _is_code(text))
    damaged = (text for text in texts if resembles_pass(text))
    return next(whole, None) or next(damaged, texts[0])


def _decode(stroke: Stroke, layout: _Layout, caps_shifts_all: bool) -> str:  # noqa: FBT001 - positional, from a tuple
    if stroke.text:
        return stroke.text
    plain, shifted = layout.get(stroke.code, ("\ufffd", "\ufffd"))
    caps = stroke.caps and (caps_shifts_all or (plain.isalpha() and plain.upper() == shifted))
    return shifted if stroke.shift != caps else plain


def _is_code(text: str) -> bool:
    is_pass = _PASS.search("".join(text.split()).upper()) is not None
    return is_pass or classify(text)[0] in {"code", "link"}


# The kernel's struct input_event: seconds, microseconds, type, code and value.
EVENT = struct.Struct("@llHHi")
_SYNCHRONISE, _KEY, _DROPPED = 0, 1, 3
_RELEASED, _PRESSED = 0, 1
_GRAB = 0x40044590  # the ioctl EVIOCGRAB
_LAST_PRINTABLE = 126


class Keyboard:
    """An open input device. It is grabbed, so that no other program receives its keys."""

    def __init__(self, handle: int) -> None:
        self.dropped = ""
        self._handle = handle
        self._rest = b""
        self._strokes: list[Stroke] = []
        self._held: set[int] = set()
        self._caps = False
        self._number = ""
        self._spoiled = ""

    def fileno(self) -> int:
        """Return the file descriptor for `select`."""
        return self._handle

    def feed(self, raw: bytes) -> list[str]:
        """Return the codes that `raw` completes. Sets `dropped` to the reason if input is lost."""
        self.dropped = ""
        found: list[str] = []
        raw = self._rest + raw
        whole = len(raw) - len(raw) % EVENT.size
        self._rest = raw[whole:]
        for _, _, kind, code, value in EVENT.iter_unpack(raw[:whole]):
            if kind == _SYNCHRONISE and code == _DROPPED:
                self._spoiled = "key events were lost and the code was dropped. Scan again"
                self._held.clear()
            elif kind == _KEY and value == _PRESSED:
                found += self._press(code)
            elif kind == _KEY and value == _RELEASED:
                self._release(code)
        return found

    def pause(self) -> list[str]:
        """End the current code after a pause. Return it unless it is too short."""
        self.dropped = ""
        if len(self._strokes) < SHORTEST_BY_PAUSE:
            self._strokes.clear()
        return self._end()

    def close(self) -> None:
        """Close the device. This also ends the exclusive grab."""
        os.close(self._handle)

    def _press(self, code: int) -> list[str]:
        if code in ENDS:
            return self._end()
        if code in SHIFTS or code in ALTS:
            self._held.add(code)
            self._number = ""
        elif code == CAPS_LOCK:
            self._caps = not self._caps
        elif self._held & ALTS and code in KEYPAD_DIGITS:
            self._number += KEYPAD_DIGITS[code]
        elif code not in SILENT:
            self._type(Stroke(code, bool(self._held & SHIFTS), self._caps))
        return []

    def _release(self, code: int) -> None:
        self._held.discard(code)
        if code in ALTS and self._number:
            number, self._number = int(self._number[-4:]), ""
            if ord(" ") <= number <= _LAST_PRINTABLE:
                self._type(Stroke(0, text=chr(number)))

    def _type(self, stroke: Stroke) -> None:
        if len(self._strokes) < CODE_MAX:
            self._strokes.append(stroke)
        else:
            self._spoiled = f"input longer than {CODE_MAX} characters was dropped"

    def _end(self) -> list[str]:
        text = read_strokes(self._strokes).strip()
        self._strokes.clear()
        if "\ufffd" in text:
            self._spoiled = (
                self._spoiled or "input was dropped, because it contains keys that no code contains"
            )
        self.dropped, self._spoiled = self._spoiled, ""
        return [text] if text and not self.dropped else []


def open_keyboard(settings: ReaderSettings) -> Keyboard:
    """Open the keyboard at `settings.device` and grab it, so that no other program gets its keys.

    A file that is not a device is opened without a grab. Raises OSError if the device cannot be
    opened. The errno is EBUSY if another program has grabbed the device.
    """
    handle = os.open(settings.device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(handle, _GRAB, 1)
    except OSError:
        if stat.S_ISCHR(os.fstat(handle).st_mode):
            os.close(handle)
            raise
        log.warning("scanner: the input is not a device, so other programs can read it too")
    return Keyboard(handle)


_CFLAG, _ISPEED, _OSPEED = 2, 4, 5  # places in the list of termios.tcgetattr
_WRITE_SECONDS = 1.0
_DECISION_SECONDS = 10.0  # time limit for a decision, after which the answer is grey
_CLOSE_SECONDS = 1.0
_CHUNK = 4096
_REASONS = {
    (errno.ENOENT, errno.ENODEV, errno.ENXIO): "is not there. Plug it in",
    (errno.EACCES, errno.EPERM): (
        "cannot be opened. Add this user to the groups dialout and input"
    ),
    (errno.EBUSY, errno.EAGAIN): "is in use by another program. Stop that program",
}


class SerialScanner(Lines):
    """A serial or USB-CDC scanner whose port is open and locked."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port

    def fileno(self) -> int:
        """Return the file descriptor for `select`."""
        return self.port

    def close(self) -> None:
        """Close the port. This also ends the lock."""
        os.close(self.port)


Device = SerialScanner | Keyboard


def open_serial(settings: ReaderSettings) -> SerialScanner:
    """Open the scanner at `settings.device`. Raises OSError if it cannot be opened."""
    return SerialScanner(_open(settings.device, settings.baud))


class DeviceReader:
    """Opens the device once it is present, reads codes, calls `decide` and writes the answers.

    Handles one code at a time. Meanwhile, further input waits in the kernel's buffer.
    """

    def __init__(
        self, settings: ReaderSettings, open_device: Callable[[ReaderSettings], Device],
        decide: Decide, watch: Watch,
    ) -> None:  # fmt: skip
        self._settings, self._watch = settings, watch
        self._open, self._decide = open_device, decide
        self._stopping = threading.Event()
        self._pending: Future[Answer] = Future()
        # The open port of `answer_device`, or None.
        self._relay: int | None = None
        # A daemon thread, so that the process can exit even while a driver hangs.
        name = f"reader {settings.place}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    async def start(self) -> None:
        """Start the thread, even if the device is absent."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def close(self) -> None:
        """Stop within 1 s, even if the driver hangs. A decision in progress still completes."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join, _CLOSE_SECONDS)
        self._pending.cancel()

    def _run(self) -> None:
        wait = FIRST_WAIT
        while not self._stopping.is_set():
            try:
                with closing(self._open(self._settings)) as device:
                    self._watch.connected()
                    wait = FIRST_WAIT
                    self._read(device)
            except OSError as error:
                self._watch.disconnected(_describe(error))
            except Exception as error:  # noqa: BLE001 - the scanner is opened again
                log_exception(f"scanner: {self._settings.place}", error)
                self._watch.disconnected(f"failed unexpectedly ({type(error).__name__})")
            self._stopping.wait(wait)
            wait = min(wait * 2, LONGEST_WAIT)
        if self._relay is not None:
            os.close(self._relay)

    def _read(self, device: Device) -> None:
        """Read codes until `close` is called. Raises OSError if the device is gone."""
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
            self._pending = asyncio.run_coroutine_threadsafe(deciding, self._loop)
            return self._pending.result(_DECISION_SECONDS)
        except RuntimeError:  # the event loop is closed
            deciding.close()
        except (TimeoutError, CancelledError):
            pass
        return TROUBLE

    def _answer(self, device: Device, parts: Sequence[bytes]) -> None:
        """Write the answer to `answer_device` if it is set, otherwise to a serial scanner.

        A failure of `answer_device` is recorded as a fault. Raises OSError if the scanner fails.
        """
        settings = self._settings
        if isinstance(device, SerialScanner) and not settings.answer_device:
            _write_answer(device.port, parts)
        if not settings.answer_device or not any(parts):
            return
        try:
            if self._relay is None:
                self._relay = _open(settings.answer_device, settings.answer_baud)
            _write_answer(self._relay, parts)
        except OSError as error:
            relay, self._relay = self._relay, None  # the next answer reopens it
            with suppress(OSError):
                if relay is not None:
                    os.close(relay)
            self._watch.decided(f"{settings.answer_device} {_describe(error)}")


def _open(path: str, baud: int) -> int:
    """Open a serial port: raw, 8 bits, no parity, no flow control, and locked by this process.

    What had arrived before is dropped, because it may be part of an earlier code. Raises OSError.
    """
    port = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB)
        tty.setraw(port, termios.TCSANOW)
        state = termios.tcgetattr(port)
        state[_CFLAG] |= termios.CLOCAL | termios.CREAD
        state[_CFLAG] &= ~(termios.CSTOPB | termios.CRTSCTS)
        state[_ISPEED] = state[_OSPEED] = getattr(termios, f"B{baud}")
        termios.tcsetattr(port, termios.TCSANOW, state)
        termios.tcflush(port, termios.TCIFLUSH)
    except termios.error as error:
        os.close(port)
        raise OSError(*error.args) from None
    except OSError:
        os.close(port)
        raise
    return port


def _write_answer(port: int, parts: Sequence[bytes]) -> None:
    """Write the parts, with a pause between them. Raises OSError, also if the port takes none."""
    for number, part in enumerate(parts):
        if number:
            time.sleep(ANSWER_PAUSE_SECONDS)
        left = part
        while left:
            if not select.select([], [port], [], _WRITE_SECONDS)[1]:
                raise TimeoutError
            left = left[os.write(port, left) :]


def _describe(error: OSError) -> str:
    if error.errno in {None, errno.EIO}:
        return "does not respond. Unplug it and plug it in again"
    found = (reason for numbers, reason in _REASONS.items() if error.errno in numbers)
    return next(found, f"does not work ({error.strerror or type(error).__name__})")
