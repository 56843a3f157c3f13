"""A serial scanner on a pseudo terminal: read, answered, unplugged and plugged in again."""

import asyncio

import pytest

from tests.app.terminal_bridge.scanners.conftest import reading
from tests.waiting import until, within

OPEN = b"\xa0\x01\x01\xa2"
GREEN, RED = (b"\xa0\x01", b"\x01\xa2"), (b"\x07",)  # green pauses after two bytes


@pytest.fixture
def settings_of(scanner):
    answer = {"green": GREEN, "red": RED, "amber": (b"A",), "grey": (b"G",)}
    return {"kind": "serial", "device": str(scanner.link), "answer": answer}


async def test_a_scan_is_decided_and_its_colour_switches_the_relay(box, door, scanner, settings_of):
    guest = await door.guest()
    text = await door.pass_of(guest)

    async with reading(box, **settings_of) as readers:
        await until(lambda: readers.states[0].connected_since is not None)
        scanner.send(text)  # without a terminator, the code ends after a pause
        assert await scanner.received(4) == OPEN
        scanner.send("not one of ours\r\n")
        assert await scanner.received(1) == RED[0]

    assert (await door.now_of(guest)).arrived == 1
    assert await door.rows("SELECT result, terminal_id FROM scan_log ORDER BY seq") == [
        ("checked_in", door.terminal_id), ("unknown_code", door.terminal_id)
    ]  # fmt: skip


@pytest.mark.parametrize("repeat", [False, True])
async def test_a_pass_that_stays_in_front_of_the_reader_opens_the_turnstile_once(
    box, door, scanner, settings_of, repeat
):
    text = await door.pass_of(await door.guest())

    async with reading(box, repeat_answer=repeat, **settings_of) as readers:
        await until(lambda: readers.states[0].connected_since is not None)
        for _ in range(2):
            scanner.send(text + "\r")
        for _ in range(2):  # a verdict that is not green is shown again
            scanner.send("not one of ours\r")
        pulses = OPEN * (2 if repeat else 1)
        assert await scanner.received(len(pulses) + 2) == pulses + RED[0] * 2


async def test_a_scanner_works_again_after_it_was_unplugged_and_plugged_in(
    box, door, scanner, settings_of
):
    first, second = await door.guest(), await door.guest(table="T2")

    async with reading(box, **settings_of) as readers:
        [state] = readers.states
        await until(lambda: state.connected_since is not None)
        scanner.send(await door.pass_of(first) + "\rhalf of a co")
        assert await scanner.received(4) == OPEN

        for _ in range(2):
            scanner.unplug()
            await until(lambda: state.connected_since is None)
            assert "plug it in" in state.trouble.lower()
            scanner.plug()
            await until(lambda: state.connected_since is not None)
            assert state.trouble is None

        scanner.send(await door.pass_of(second) + "\r")
        assert await scanner.received(4) == OPEN

    assert [row[0] for row in await door.rows("SELECT result FROM scan_log")] == ["checked_in"] * 2


async def test_invalid_input_is_dropped_and_reported_but_never_decided(
    box, door, scanner, settings_of
):
    async with reading(box, **settings_of) as readers:
        [state] = readers.states
        await until(lambda: state.connected_since is not None)
        scanner.send(b"\xfe\xff\xfe\r" + b"x" * 3000 + b"\r")
        await until(lambda: state.trouble is not None)
        scanner.send(await door.pass_of(await door.guest()) + "\r")
        assert await scanner.received(4) == OPEN

    assert await door.rows("SELECT result FROM scan_log") == [("checked_in",)]


async def test_the_fault_of_a_reader_is_reported_to_the_doctor_while_it_lasts(
    box, door, scanner, settings_of
):
    noted = "SELECT name, detail FROM observation"

    async def becomes(count):
        async with within(f"{count} noted troubles"):
            while len(rows := await door.rows(noted)) != count:  # noqa: ASYNC110 - a thread's doing
                await asyncio.sleep(0.01)
        return rows

    async with reading(box, **settings_of) as readers:
        await until(lambda: readers.states[0].connected_since is not None)
        scanner.unplug()
        [(name, detail)] = await becomes(1)
        scanner.plug()
        await becomes(0)

    assert name == "reader_trouble"
    assert "is not there. Plug it in" in detail
