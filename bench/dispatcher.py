"""The delivery engine, measured: drain, hung endpoint, latency, throughput.

Run as `python -m bench.dispatcher [--full]` from the project's root, or by
`bench/run.py --only dispatcher`. Ends with a table of targets, each held or missed.
"""

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
from pathlib import Path

from appliance.webhooks.client import Budgets
from bench.deliveries import Sender, Target, a_sender
from bench.drain import drain
from bench.sinks import Sinks, open_sinks
from bench.webhooks import throughput

ENDPOINTS = 5


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
    _say("one endpoint hangs, rounds in turn")
    targets += await _hung(next(names), sinks, *((30, 3.0) if full else (6, 3.0)))
    _say("throughput beside a bare aiohttp client, rounds in turn")
    ratios = [await throughput(next(names), sinks, 4000 if full else 1500) for _ in range(3)]
    ratio = sorted(ratios)[1]
    targets.append(("rate / bare aiohttp client", ">= 0.50", f"{ratio:.2f}", ratio >= 0.5))
    events = 10_000 if full else 1500
    _say(f"drain of {events:,} events × {ENDPOINTS} endpoints that answer after 20 ms, twice")
    targets += await drain(next(names), sinks, events)
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


async def _hung(folder: Path, sinks: Sinks, pairs: int, seconds: float) -> list[Target]:
    """Short rounds without and with an endpoint that hangs, at nearly 100 bookings a second.

    An attempt is given up after 1.5 s, so that each round has all of it: six that wait, their
    timeouts, and one at a time. A moment in which the machine does something else
    spoils one round; medians over the rounds do not notice.
    """
    sinks.answer_after(0.0)
    delays: dict[bool, list[float]] = {False: [], True: []}
    waits: dict[bool, list[float]] = {False: [], True: []}
    async with a_sender(folder, sinks.urls, Budgets(total=1.5)) as sender:
        await sender.dispatcher.start()
        await _pace(sender, 50, 0.02)
        await sender.drained()
        for number in range(2 * pairs):
            hangs = number % 4 in {1, 2}  # without, with, with, without: a drift hits both alike
            sinks.take()
            sender.committed.clear()
            sender.waits.clear()
            sinks.answer_after(None if hangs else 0.0, 0)
            await _pace(sender, round(seconds * 100), 0.01)
            await asyncio.sleep(0.1)
            delays[hangs].append(_p99(_delays(sender, sinks, but=0)))
            waits[hangs].append(_p99(sender.waits))
            sinks.answer_after(0.0, 0)
            await sender.give_up(0)
            await sender.drained()
            if number % 10 == 9:
                print(f"  round {number + 1} of {2 * pairs}", flush=True)
    targets: list[Target] = []
    for what, found in (("commit to first byte of the others, p99", delays),
                        ("booking, p99", waits)):  # fmt: skip
        alone, beside = (statistics.median(found[hangs]) for hangs in (False, True))
        same = statistics.median(found[False][::2]) / statistics.median(found[False][1::2])
        print(f"  {what}, median of {pairs} rounds each: {alone * 1e3:.2f} ms without, "
              f"{beside * 1e3:.2f} ms with one that hangs; without beside without "
              f"{max(same, 1 / same):.2f} ×")  # fmt: skip
        ratio = beside / alone
        targets.append((f"one hangs: {what}", "<= 1.10 ×", f"{ratio:.2f} ×", ratio <= 1.1))
    return targets


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


def _say(what: str) -> None:
    print(f"· {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
