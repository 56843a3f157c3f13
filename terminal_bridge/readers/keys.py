"""Keys of Linux input events, and what a scanner meant by pressing them.

The kernel tells keys, not letters, so the layout of this computer does not matter. That of the
scanner does: set for France, it presses other keys for the same text. Both are tried.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from appliance.model.access_code import parse_access_code
from appliance.model.guest_pass import resembles_pass

ENTER, KEYPAD_ENTER, TAB, CAPS_LOCK = 28, 96, 15, 58
ENDS = frozenset({ENTER, KEYPAD_ENTER, TAB})
SHIFTS = frozenset({42, 54})
ALTS = frozenset({56, 100})
SILENT = frozenset({29, 97, 125, 126, 69, 70, 1, *SHIFTS, *ALTS})  # Ctrl, Meta, locks, Escape
KEYPAD_DIGITS: Mapping[int, str] = MappingProxyType(
    {71: "7", 72: "8", 73: "9", 75: "4", 76: "5", 77: "6", 79: "1", 80: "2", 81: "3", 82: "0"}
)
_KEYPAD: Mapping[int, str] = MappingProxyType(
    {**KEYPAD_DIGITS, 55: "*", 74: "-", 78: "+", 83: ".", 98: "/"}
)

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
    return MappingProxyType(keypad | keys)


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
    texts = list(_spell_all(tuple(strokes)))
    whole = (text for text in texts if _is_ours(text))
    damaged = (text for text in texts if resembles_pass(text))
    return next(whole, None) or next(damaged, texts[0])


def _spell_all(strokes: tuple[Stroke, ...]) -> Iterator[str]:
    yield _spell(strokes, _US)
    yield _spell(strokes, _FRENCH)
    # Windows' Caps Lock shifts the digits of a French keyboard too.
    yield _spell(strokes, _FRENCH, caps_shifts_all=True)


def _spell(strokes: tuple[Stroke, ...], layout: _Layout, *, caps_shifts_all: bool = False) -> str:
    return "".join(_write(stroke, layout, caps_shifts_all) for stroke in strokes)


def _write(stroke: Stroke, layout: _Layout, caps_shifts_all: bool) -> str:  # noqa: FBT001 - handed on
    if stroke.text:
        return stroke.text
    plain, shifted = layout.get(stroke.code, ("\ufffd", "\ufffd"))
    caps = stroke.caps and (caps_shifts_all or (plain.isalpha() and plain.upper() == shifted))
    return shifted if stroke.shift != caps else plain


def _is_ours(text: str) -> bool:
    is_pass = _PASS.fullmatch(text.strip().upper())
    return bool(is_pass) or parse_access_code(text) is not None or "/access/" in text
