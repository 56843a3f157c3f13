"""A keyboard-wedge scanner at this computer: Linux input events, and what they mean.

The kernel reports keys, not letters, so the layout of this computer does not matter. That of the
scanner does: set for France, it presses other keys for the same text. Both are tried.
"""

import fcntl
import logging
import os
import re
import stat
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from appliance.model.access_code import parse_access_code
from appliance.model.guest_pass import resembles_pass
from appliance.settings_readers import ReaderSettings
from terminal_bridge.readers.lines import CODE_MAX

log = logging.getLogger(__name__)

ENTER, KEYPAD_ENTER, TAB, CAPS_LOCK = 28, 96, 15, 58
ENDS = frozenset({ENTER, KEYPAD_ENTER, TAB})
SHIFTS = frozenset({42, 54})
ALTS = frozenset({56, 100})
SILENT = frozenset({29, 97, 125, 126, 69, 70, 1, *SHIFTS, *ALTS})  # Ctrl, Meta, locks, Escape
KEYPAD_DIGITS: Mapping[int, str] = dict(
    zip((71, 72, 73, 75, 76, 77, 79, 80, 81, 82), "7894561230", strict=True)
)
_KEYPAD: Mapping[int, str] = {**KEYPAD_DIGITS, 55: "*", 74: "-", 78: "+", 83: ".", 98: "/"}

# Stricter than the box, which tries other layouts itself: here all have been tried.
_PASS = re.compile(r"SVC1[A-Z2-7]{135}")
_Layout = Mapping[int, tuple[str, str]]


def _layout(*rows: tuple[int, str, str]) -> _Layout:
    """Rows of neighbouring keys: the first key's code, what they write, and that with Shift."""
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
    """A key that was pressed. `text` is what was typed by its number, with Alt held."""

    code: int
    shift: bool = False
    caps: bool = False
    text: str = ""


def read_strokes(strokes: Iterable[Stroke]) -> str:
    """What was meant: the first layout in which it is one of our codes, else the US one."""
    typed = tuple(strokes)
    # Windows' Caps Lock shifts the digits of a French keyboard too.
    ways = ((_US, False), (_FRENCH, False), (_FRENCH, True))
    texts = ["".join(_write(stroke, *way) for stroke in typed) for way in ways]
    whole = (text for text in texts if _is_ours(text))
    damaged = (text for text in texts if resembles_pass(text))
    return next(whole, None) or next(damaged, texts[0])


def _write(stroke: Stroke, layout: _Layout, caps_shifts_all: bool) -> str:  # noqa: FBT001 - handed on
    if stroke.text:
        return stroke.text
    plain, shifted = layout.get(stroke.code, ("\ufffd", "\ufffd"))
    caps = stroke.caps and (caps_shifts_all or (plain.isalpha() and plain.upper() == shifted))
    return shifted if stroke.shift != caps else plain


def _is_ours(text: str) -> bool:
    is_pass = _PASS.fullmatch(text.strip().upper())
    return bool(is_pass) or parse_access_code(text) is not None or "/access/" in text


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

    def fileno(self) -> int:
        """What to wait on."""
        return self._handle

    def feed(self, raw: bytes) -> list[str]:
        """The codes that these bytes complete. `dropped` then says why something was not one."""
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

    def pause(self) -> list[str]:
        """The code that silence completes."""
        self.dropped = ""
        if len(self._strokes) < _SHORTEST_BY_PAUSE:
            self._strokes.clear()
        return self._end()

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
