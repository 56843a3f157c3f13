"""The delivery engine, measured: drain, hung endpoint, latency, throughput. Targets of issue 3.

Run as `python -m tests.bench.dispatcher [--full]` from the project's root, or by
`tests/bench/run.py --only dispatcher`. Ends with a table of targets, each held or missed.
"""

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.deliveries import Sender, a_sender
from tests.bench.sinks import Sinks, open_sinks
from tests.bench.webhooks import SAMPLE, post, throughput

ENDPOINTS = 5
LATENCY = 0.020
WINDOW, IN_FLIGHT_MAX = 8, 32
Target = tuple[str, str, str, bool]  # what, target, found, held


def main() -> int:
    """Measure, print; 1 when an answer was wrong, whatever the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="10,000 events, longer phases")
    full = parser.parse_args().full
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name, open_sinks(ENDPOINTS) as sinks:
        targets = asyncio.run(_measure(Path(name), sinks, full=full))
    print(f"\n{'delivery engine':<58}{'target':>12}{'found':>12}")
    for what, target, found, held in targets:
        print(f"{'holds ' if held else 'MISSED'} {what:<51}{target:>12}{found:>12}")
    return 0


async def _measure(folder: Path, sinks: Sinks, *, full: bool) -> list[Target]:
    names = (folder / str(number) for number in itertools.count())
    targets = []
    _say("latency when idle")
    targets += await _idle(next(names), sinks, 300 if full else 100)
    _say("one endpoint hangs")
    targets += await _hung(next(names), sinks, *((5, 15.0) if full else (3, 4.0)))
    _say("throughput beside a bare aiohttp client, rounds in turn")
    ratios = [await throughput(next(names), sinks, 4000 if full else 1500) for _ in range(3)]
    ratio = sorted(ratios)[1]
    targets.append(("rate / bare aiohttp client", ">= 0.50", f"{ratio:.2f}", ratio >= 0.5))
    events = 10_000 if full else 1500
    _say(f"drain of {events:,} events × {ENDPOINTS} endpoints that answer after 20 ms")
    targets += await _drain(next(names), sinks, events)
    return targets


async def _idle(folder: Path, sinks: Sinks, count: int) -> list[Target]:
    sinks.answer_after(0.0)
    async with a_sender(folder, sinks.urls) as sender:
        await sender.dispatcher.start()
        await _pace(sender, 20, 0.05)
        sender.committed.clear()
        await _pace(sender, count, 0.05)
        await sender.drained()
        delays = _delays(sender, sinks)
    p99 = _p99(delays)
    print(f"  commit to first byte: p50 {_p50(delays) * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms")
    return [("commit to first byte when idle, p99", "< 20 ms", f"{p99 * 1e3:.1f} ms", p99 < 0.02)]


async def _hung(folder: Path, sinks: Sinks, rounds: int, seconds: float) -> list[Target]:
    """Rounds without and with a hung endpoint in turn, at 50 bookings a second."""
    sinks.answer_after(0.0)
    delays: dict[bool, list[float]] = {False: [], True: []}
    waits: dict[bool, list[float]] = {False: [], True: []}
    async with a_sender(folder, sinks.urls) as sender:
        await sender.dispatcher.start()
        await _pace(sender, 50, 0.02)
        await sender.drained()
        for hangs in (False, True) * rounds:
            sinks.take()
            sender.committed.clear()
            sender.waits.clear()
            sinks.answer_after(None if hangs else 0.0, 0)
            await _pace(sender, round(seconds * 50), 0.02)
            await asyncio.sleep(0.1)
            delays[hangs] += _delays(sender, sinks, but=0)
            waits[hangs] += sender.waits
            sinks.answer_after(0.0, 0)
            await sender.drained()
    targets: list[Target] = []
    for what, found in (("commit to first byte of the others, p99", delays),
                        ("booking, p99", waits)):  # fmt: skip
        alone, beside = _p99(found[False]), _p99(found[True])
        print(f"  {what}: {alone * 1e3:.2f} ms without, {beside * 1e3:.2f} ms with one that hangs")
        ratio = beside / alone
        targets.append((f"one hangs: {what}", "<= 1.10 ×", f"{ratio:.2f} ×", ratio <= 1.1))
    return targets


async def _drain(folder: Path, sinks: Sinks, events: int) -> list[Target]:
    """Queue while nothing sends; then send, with four fresh bookings a second meanwhile."""
    sinks.answer_after(LATENCY)
    by_window = events * LATENCY / WINDOW
    ideal = max(by_window, events * ENDPOINTS * LATENCY / IN_FLIGHT_MAX)
    async with a_sender(folder, sinks.urls) as sender:
        await sender.queue(events)
        sinks.take()
        begun, cpu = time.monotonic(), time.process_time()
        await sender.dispatcher.start()
        draining = asyncio.create_task(sender.drained())
        memory = []
        while not draining.done():
            await asyncio.wait([draining], timeout=0.25)
            memory.append(_memory())
            await sender.book()
        took, spent = time.monotonic() - begun, time.process_time() - cpu
        await sender.drained()
        arrivals = sinks.take()
    once = {(place, about) for place, about, _ in arrivals}
    expected = (events + len(sender.committed)) * ENDPOINTS
    if not len(once) == len(arrivals) == expected:
        raise SystemExit(f"{len(arrivals)} came, {len(once)} different ones, of {expected}")
    fresh = max(
        at - sender.committed[about] for _, about, at in arrivals if about in sender.committed
    )
    begun = time.monotonic()
    await post(sinks.urls, [SAMPLE], events, IN_FLIGHT_MAX)
    bare = time.monotonic() - begun
    sinks.take()
    grown = (memory[-1] - memory[len(memory) // 4]) / memory[len(memory) // 4]
    ratio = took / ideal
    print(f"  {took:.1f} s; ideal {ideal:.1f} s with 32 in flight, {by_window:.1f} s if each had 8")
    print(f"  a bare aiohttp client with 32 at once: {bare:.1f} s; ours {took / bare:.2f} × that")
    print(f"  {spent / expected * 1e6:.0f} µs of CPU each, {memory[-1] >> 20} MiB")
    return [
        ("drain / ideal N·L/C, 32 in flight", "<= 1.15 ×", f"{ratio:.2f} ×", ratio <= 1.15),
        (
            "drain / a bare client, 32 at once",
            "<= 1.15 ×",
            f"{took / bare:.2f} ×",
            took / bare <= 1.15,
        ),
        ("slowest fresh event during the drain", "< 1 s", f"{fresh * 1e3:.0f} ms", fresh < 1),
        ("memory from a quarter of the drain on", "<= +2 %", f"{grown:+.1%}", grown <= 0.02),
    ]


async def _pace(sender: Sender, count: int, every: float) -> None:
    for _ in range(count):
        await sender.book()
        await asyncio.sleep(every)


def _delays(sender: Sender, sinks: Sinks, but: int | None = None) -> list[float]:
    return [
        at - sender.committed[about]
        for place, about, at in sinks.take()
        if about in sender.committed and place != but
    ]


def _p50(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def _memory() -> int:
    """Resident bytes of this process, without the files that are mapped."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


def _say(what: str) -> None:
    print(f"· {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
