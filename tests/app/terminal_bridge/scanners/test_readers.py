"""All readers of a computer together: their states, and that one does not disturb another."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.clock import SystemClock
from appliance.core.scanner_settings import ReaderSettings
from terminal_bridge.scanners.device import DeviceReader
from terminal_bridge.scanners.scanner import CODE_MAX, Answer, Lines, Watch
from terminal_bridge.scanners.scanners import Once, Readers
from tests.waiting import until, within

SETTINGS = ReaderSettings(kind="serial", device="/dev/scanner", terminal="Porte 1")


async def test_a_hanging_driver_does_not_delay_the_shutdown():
    hanging, released = threading.Event(), threading.Event()

    def hang(_settings):
        hanging.set()
        released.wait()
        raise OSError

    reader = DeviceReader(SETTINGS, hang, None, Watch(SETTINGS, SystemClock()))
    await reader.start()
    await until(hanging.is_set)

    async with within("the end of the reader"):
        await reader.close()

    released.set()
    await until(lambda: not any(t.name == "reader /dev/scanner" for t in threading.enumerate()))


async def test_a_failed_decision_is_grey_and_the_next_scan_is_decided(tmp_path, scanner):
    answers = iter([RuntimeError("accident"), Answer("green", "checked_in")])

    async def decide(_code):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    settings = ReaderSettings(
        kind="serial", device=str(scanner.link), answer={"grey": (b"?",), "green": (b"!",)}
    )
    readers = Readers((settings,), lambda _: decide, SystemClock())
    await readers.start()
    await until(lambda: readers.states[0].connected_since is not None)
    scanner.send("SVC-7K2M\r")
    assert await scanner.received(1) == b"?"
    scanner.send("SVC-7K2M\r")
    assert await scanner.received(1) == b"!"
    await readers.close()


async def test_two_simultaneous_scans_of_a_code_wait_for_one_decision(clock):
    asked, go = [], asyncio.Event()

    async def decide(code):
        asked.append(code)
        await go.wait()
        return Answer("green", "checked_in")

    once = Once(decide, clock)
    both = asyncio.gather(once("A"), once("A"), once("B"))
    await asyncio.sleep(0)
    go.set()

    assert await both == [Answer("green", "checked_in")] * 3
    assert sorted(asked) == ["A", "B"]


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\t", b"\r\n", b"\r\n\r\n", b"\x03\r"])
def test_a_code_ends_with_a_terminator(end):
    assert Lines().feed(b"\x00\x02SVC-7K2M" + end + b"SVC-AB") == ["SVC-7K2M"]
    assert Lines().feed(b"a" * CODE_MAX + b"\r") == ["a" * CODE_MAX]
    lines = Lines()
    assert [lines.feed(piece) for piece in (b"A", b"B", end)] == [[], [], ["AB"]]


def test_a_pause_between_keys_ends_a_code_and_a_lone_key_is_ignored():
    lines = Lines()

    lines.feed(b"SVC-7K2M")
    assert lines.is_waiting
    assert lines.pause() == ["SVC-7K2M"]
    lines.feed(b"x")
    assert lines.pause() == []
    assert not lines.is_waiting


@pytest.mark.parametrize("raw", [b"\xff\xfeSVC\r", b"\x1bSVC\r", b"a" * (CODE_MAX + 1) + b"\r"])
def test_invalid_or_too_long_input_is_dropped_with_a_reason_and_the_next_code_is_read(raw):
    lines = Lines()

    assert lines.feed(raw) == []
    assert lines.dropped
    assert lines.feed(b"SVC-7K2M\r") == ["SVC-7K2M"]
    assert lines.dropped == ""


@given(st.lists(st.binary(max_size=300)))
def test_from_any_input_every_code_is_printable_and_within_its_limits(pieces):
    lines = Lines()

    codes = [code for piece in pieces for code in lines.feed(piece)] + lines.pause()

    assert all(code.isprintable() and code == code.strip() for code in codes)
    assert all(1 <= len(code) <= CODE_MAX for code in codes)
