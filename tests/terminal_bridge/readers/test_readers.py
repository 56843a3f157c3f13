"""All readers of a computer together: their states, and that none harms another."""

import asyncio
import threading
from pathlib import Path

from appliance.clock import SystemClock
from appliance.settings_readers import ReaderSettings
from terminal_bridge.readers.answer import Answer
from terminal_bridge.readers.device import DeviceReader
from terminal_bridge.readers.once import Once
from terminal_bridge.readers.readers import Readers
from terminal_bridge.readers.state import Watch
from tests.terminal_bridge.readers.conftest import until

SETTINGS = ReaderSettings(kind="serial", device="/dev/scanner", terminal="Porte 1")


async def test_the_application_starts_and_stops_them_with_absent_devices(box, settings):
    absent = ReaderSettings(kind="serial", device="/dev/serial/by-id/none", terminal="Porte 1")
    readers = Readers((absent,), lambda _: None, SystemClock())
    await readers.start()
    await until(lambda: readers.states[0].trouble is not None)

    await readers.close()

    assert readers.states[0].to_wire() == {
        "kind": "serial", "place": "/dev/serial/by-id/none", "terminal": "Porte 1",
        "environment": "live", "connectedSince": None, "lastReadAt": None, "reads": 0,
        "dropped": 0, "trouble": "is not there: plug it in",
    }  # fmt: skip


async def test_a_driver_that_hangs_keeps_nobody_from_leaving():
    hanging, released = threading.Event(), threading.Event()

    def hang(_settings):
        hanging.set()
        released.wait()
        raise OSError

    reader = DeviceReader(SETTINGS, hang, None, Watch(SETTINGS, SystemClock()))
    await reader.start()
    await until(hanging.is_set)

    async with asyncio.timeout(20):
        await reader.close()

    released.set()
    await until(lambda: not any(t.name == "reader /dev/scanner" for t in threading.enumerate()))


async def test_a_reader_that_fails_unexpectedly_goes_on_trying_and_says_so():
    tries = []

    def fail(_settings):
        tries.append(1)
        raise RuntimeError("driver")

    watch = Watch(SETTINGS, SystemClock())
    reader = DeviceReader(SETTINGS, fail, None, watch)
    await reader.start()
    await until(lambda: len(tries) >= 2)
    await reader.close()

    assert watch.state.trouble == "failed unexpectedly (RuntimeError)"


async def test_a_decision_that_fails_is_grey_and_the_next_scan_is_decided(tmp_path, scanner):
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


async def test_two_readings_of_a_code_at_once_wait_for_one_decision(clock):
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


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_file_stays_open(scanner, tmp_path):
    before = open_files()
    settings = ReaderSettings(kind="serial", device=str(scanner.link))
    for _ in range(3):
        readers = Readers((settings,), lambda _: None, SystemClock())
        await readers.start()
        await until(lambda readers=readers: readers.states[0].connected_since is not None)
        await readers.close()

    await until(lambda: open_files() <= before)
