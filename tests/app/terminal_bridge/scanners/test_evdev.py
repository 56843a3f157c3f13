"""A keyboard-wedge scanner at the box, set to any keyboard layout."""

import os
import time

import pytest

from appliance.core.scanner_settings import ReaderSettings
from terminal_bridge.scanners.device import (
    _FRENCH,
    _US,
    EVENT,
    KEYPAD_DIGITS,
    Stroke,
    open_keyboard,
    read_strokes,
)
from terminal_bridge.scanners.device import _KEYPAD as KEYPAD
from tests.app.terminal_bridge.scanners.conftest import reading
from tests.waiting import until

PASS = "SVC1" + ("AEBAGBAFAYDQQCIKBMGA2DQPCAIREEYUCULBOGAZDINRYHI6D4QCCIRD" * 3)[:134] + "A"
LINK = "https://box.example/access/AZqwM0_-zW"


def strokes_of(text, layout, caps=False, keypad=False):
    """Return the keys that a scanner set to `layout` presses."""
    keys = {digit: (code, False) for code, digit in KEYPAD_DIGITS.items()} if keypad else {}
    for code, (plain, shifted) in sorted(layout.items(), reverse=True):
        if code in KEYPAD or plain in keys:
            continue
        keys[plain] = (code, False)
        keys.setdefault(shifted, (code, True))
    return [Stroke(keys[sign][0], keys[sign][1], caps) for sign in text]


@pytest.mark.parametrize("layout", [_US, _FRENCH], ids=["US scanner", "French scanner"])
@pytest.mark.parametrize("text", [PASS, PASS.lower(), f")Q1{PASS}", "SVC-7K2M", "svc-7k2m", LINK])
def test_a_scan_is_read_with_every_keyboard_layout_of_the_scanner(layout, text):
    assert read_strokes(strokes_of(text, layout)) == text


SHIFT, CAPS, ENTER, ALT = 42, 58, 28, 56
PRESSED, RELEASED, REPEATED = 1, 0, 2


def event(code, value, kind=1):
    now = time.time_ns() // 1000
    return EVENT.pack(now // 10**6, now % 10**6, kind, code, value) + EVENT.pack(0, 0, 0, 0, 0)


def tap(code):
    return event(code, PRESSED) + event(code, RELEASED)


def typed(text, layout=_US, end=ENTER):
    """Return the input events of a scanner that types `text`."""
    raw = b""
    for stroke in strokes_of(text, layout):
        key = tap(stroke.code)
        raw += event(SHIFT, PRESSED) + key + event(SHIFT, RELEASED) if stroke.shift else key
    return raw + tap(end)


@pytest.fixture
def wedge(tmp_path):
    """A keyboard device, made of a pipe. The reader opens `wedge.device`."""
    path = tmp_path / "event7"
    os.mkfifo(path)
    handle = os.open(path, os.O_RDWR)

    class Wedge:
        device = str(path)

        def send(self, raw):
            os.write(handle, raw)

    yield Wedge()
    os.close(handle)


@pytest.mark.parametrize("layout", [_US, _FRENCH], ids=["US scanner", "French scanner"])
@pytest.mark.parametrize("caps", [False, True])
async def test_a_pass_is_read_with_every_layout_and_caps_lock(box, door, wedge, layout, caps):
    guest = await door.guest()
    text = await door.pass_of(guest)

    async with reading(box, kind="evdev", device=wedge.device) as readers:
        wedge.send((tap(CAPS) if caps else b"") + typed(text, layout))
        await until(lambda: readers.states[0].last_read_at is not None)

    assert (await door.now_of(guest)).arrived == 1  # closing has waited for the decision


async def test_a_keyboard_scanner_can_open_a_separate_relay(box, door, wedge, scanner):
    answer = {"green": (b"open",)}
    settings = {"device": wedge.device, "answer": answer, "answer_device": str(scanner.link)}

    async with reading(box, kind="evdev", **settings) as readers:
        wedge.send(typed(await door.pass_of(await door.guest())))
        assert await scanner.received(4) == b"open"

        scanner.unplug()
        wedge.send(typed(await door.pass_of(await door.guest(table="T2"))))
        await until(lambda: "plug it in" in (readers.states[0].trouble or "").lower())

        scanner.plug()
        wedge.send(typed(await door.pass_of(await door.guest(table="T3"))))
        assert await scanner.received(4) == b"open"


def test_key_repeats_are_ignored_and_partial_events_are_completed(wedge):
    keyboard = open_keyboard(ReaderSettings(kind="evdev", device=wedge.device))
    raw = event(30, PRESSED) + event(30, REPEATED) + event(30, RELEASED) + tap(48) + tap(ENTER)

    codes = [code for byte in raw for code in keyboard.feed(bytes([byte]))]
    keyboard.close()

    assert codes == ["ab"]


def test_a_scanner_that_types_with_alt_codes_is_supported(wedge):
    keyboard = open_keyboard(ReaderSettings(kind="evdev", device=wedge.device))
    raw = b""
    for number in ("083", "086", "067", "049"):
        digits = {"0": 82, "1": 79, "3": 81, "4": 75, "6": 77, "7": 71, "8": 72, "9": 73}
        raw += event(ALT, PRESSED) + b"".join(tap(digits[d]) for d in number) + event(ALT, RELEASED)

    codes = keyboard.feed(raw + tap(ENTER))
    keyboard.close()

    assert codes == ["SVC1"]
