"""A keyboard-wedge scanner at this computer: Linux input events, taken before anybody else."""

import fcntl
import logging
import os
import stat
import struct
from collections.abc import Callable, Sequence

from appliance.settings_readers import ReaderSettings
from terminal_bridge.readers.keys import (
    ALTS,
    CAPS_LOCK,
    ENDS,
    KEYPAD_DIGITS,
    SHIFTS,
    SILENT,
    Stroke,
    read_strokes,
)
from terminal_bridge.readers.lines import CODE_MAX

log = logging.getLogger(__name__)

EVENT = struct.Struct("@llHHi")  # struct input_event: seconds, microseconds, type, code, value
_SYNCHRONISE, _KEY, _DROPPED = 0, 1, 3
_RELEASED, _PRESSED = 0, 1
_GRAB = 0x40044590  # EVIOCGRAB
_SHORTEST_BY_PAUSE = 4
_LAST_PRINTABLE = 126


class Keyboard:
    """An open input device whose keys come here alone."""

    def __init__(self, handle: int) -> None:
        self.dropped = ""
        self._handle = handle
        self._rest = b""
        self._strokes: list[Stroke] = []
        self._held: set[int] = set()
        self._caps = False
        self._number = ""
        self._spoiled = ""

    @property
    def is_waiting(self) -> bool:  # noqa: D102 - promised by Device
        return bool(self._strokes)

    def fileno(self) -> int:  # noqa: D102 - as above
        return self._handle

    def read(self, raw: bytes) -> list[str]:  # noqa: D102 - as above
        self.dropped = ""
        found: list[str] = []
        raw = self._rest + raw
        whole = len(raw) - len(raw) % EVENT.size
        self._rest = raw[whole:]
        for _, _, kind, code, value in EVENT.iter_unpack(raw[:whole]):
            if kind == _SYNCHRONISE and code == _DROPPED:
                self._spoiled = "keys were lost and the code was dropped: scan again"
                self._held.clear()
            elif kind == _KEY and value == _PRESSED:
                found += self._press(code)
            elif kind == _KEY and value == _RELEASED:
                self._release(code)
        return found

    def pause(self) -> list[str]:  # noqa: D102 - as above
        self.dropped = ""
        if len(self._strokes) < _SHORTEST_BY_PAUSE:
            self._strokes.clear()
        return self._end()

    def answer(self, parts: Sequence[bytes]) -> None:
        """A keyboard cannot be answered."""

    def close(self) -> None:
        """Closing gives the keys back to everybody."""
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
            self._spoiled = f"something longer than {CODE_MAX} characters was read and dropped"

    def _end(self) -> list[str]:
        text = read_strokes(self._strokes).strip()
        self._strokes.clear()
        if "\ufffd" in text:
            self._spoiled = self._spoiled or "keys that no code has came and were dropped"
        self.dropped, self._spoiled = self._spoiled, ""
        return [text] if text and not self.dropped else []


def open_keyboard(settings: ReaderSettings, grab: Callable[[int], None] | None = None) -> Keyboard:
    """The keyboard at `settings.device`, grabbed: what it types reaches no console and no desk."""
    handle = os.open(settings.device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        (grab or _grab)(handle)
    except OSError:
        os.close(handle)
        raise
    return Keyboard(handle)


def _grab(handle: int) -> None:
    """OSError EBUSY when another program has it. What is no device has nothing to grab."""
    try:
        fcntl.ioctl(handle, _GRAB, 1)
    except OSError:
        if stat.S_ISCHR(os.fstat(handle).st_mode):
            raise
        log.warning("the input is no device: it is read, and not kept from others")
