"""Receivers that never answer, or send far too much.

An attempt times out after ten seconds in `make soak`, as in the interface, else earlier.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from appliance.webhooks.client import Budgets, Client
from tests.soak.scale import FULL
from tests.webhooks.attempts import REQUEST
from tests.webhooks.receivers import a_server

BUDGETS = Budgets() if FULL else Budgets(total=0.6, connect=60.0, drain=0.2, idle=4.0)
TOTAL = BUDGETS.total
LATE = 0.3 if FULL else 30.0  # the soak runs on an idle machine, tests maybe on a busy one
FLOOD = Path(__file__).with_name("flood.py")
MEBIBYTE = 1024 * 1024


class Hanging:
    """A receiver that never answers and records how long each request waited."""

    def __init__(self):
        self.held = []
        self.at_once = 0
        self.most_at_once = 0

    async def converse(self, reader, _writer):
        await reader.readuntil(b"\r\n\r\n")
        begun = time.monotonic()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await reader.read()  # until the client closes the connection
        self.at_once -= 1
        self.held.append(time.monotonic() - begun)


@pytest.fixture
def patience(monkeypatch):
    """Return (seconds, outcome) of each attempt."""
    seen, post = [], Client.post

    async def timed(self, request):
        begun = time.monotonic()
        outcome = await post(self, request)
        seen.append((time.monotonic() - begun, outcome.code))
        return outcome

    monkeypatch.setattr(Client, "post", timed)
    return seen


@pytest.mark.slow
async def test_a_receiver_that_never_answers_times_out_and_delays_no_other(
    world, open_receiver, change_outside, patience
):
    change_outside(budgets=BUDGETS)
    hung, others = Hanging(), [await open_receiver() for _ in range(4)]
    async with a_server(hung.converse) as port:
        for url in (f"http://127.0.0.1:{port}/", *(other.url for other in others)):
            await world.register(url)
        await world.start()

        await world.book(40)
        for other in others:
            await other.got(40)
        # Six at once, then one after the other.
        await world.until(
            lambda: world.attempts().count((1, "timeout")) >= 8, seconds=3 * TOTAL + 5
        )
        await world.until(lambda: len(hung.held) >= 8)
        await world.stop(0)

    assert hung.most_at_once == 6
    assert min(seconds for seconds, code in patience if code == "timeout") >= TOTAL
    assert max(hung.held[:8]) <= TOTAL + LATE
    assert all(len(other.requests) == 40 for other in others)


@pytest.fixture
def flood():
    """`url = flood(kind)`: run flood.py as a receiver."""
    started = []

    def start(kind):
        process = subprocess.Popen([sys.executable, FLOOD, kind], stdout=subprocess.PIPE, text=True)
        started.append(process)
        return f"http://127.0.0.1:{int(process.stdout.readline())}/hook"

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def most_memory(*, start_over=False):
    """Return the peak memory of this process since the last reset, in bytes."""
    if start_over:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.process
@pytest.mark.parametrize("kind", ["chunks", "bomb", "headers"])
async def test_a_response_of_any_size_uses_less_than_a_mebibyte(make_client, receiver, flood, kind):
    assert (await make_client(receiver.url).post(REQUEST)).delivered
    client = make_client(flood(kind))
    before = most_memory(start_over=True)

    outcomes = [await client.post(REQUEST) for _ in range(10)]

    assert [outcome.code for outcome in outcomes] == ["delivered"] * 10
    assert all(len(outcome.excerpt or "") <= 4 * 1024 for outcome in outcomes)
    assert most_memory() - before < MEBIBYTE
