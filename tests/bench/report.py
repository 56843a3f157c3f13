"""The figures: a table for people, JSON for whoever compares two runs, targets held or missed."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

from tests.bench import cost, peers
from tests.bench.load import Load, faster, median_of, spread
from tests.bench.machine import Commits
from tests.bench.standing import Idle

_BUSY = 1.3
_AGAINST = {
    peers.BOOK: peers.BARE_BOOK,
    peers.READ: peers.BARE_READ,
    peers.SCAN: peers.BARE_SCAN,
    peers.CREATE: peers.BARE_BOOK,
}


def compare(figures: Mapping[str, list[Load]]) -> tuple[str, dict[str, float], dict[str, Load]]:
    """The table of the peers, its ratios, and the medians."""
    head = f"{'at 32 connections':<26}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU µs':>9}"
    lines = [f"{head}{'errors':>8}{'× bare':>9}{'× PocketBase':>14}"]
    medians = {name: median_of(loads) for name, loads in figures.items()}
    ratios: dict[str, float] = {}
    for name, load in medians.items():
        line = f"{name:<26}{load.rate:>9,.0f}{load.p50:>9.2f}{load.p99:>9.2f}{load.cpu_us:>9.0f}"
        line += f"{load.errors:>8}"
        if name in _AGAINST:
            bare = faster(figures[name], figures[_AGAINST[name]])
            pocketbase = faster(figures[name], figures[peers.CREATE])
            ratios |= {f"{name} / bare": bare, f"{name} / PocketBase": pocketbase}
            line += f"{bare:>9.2f}{pocketbase:>14.2f}"
        lines.append(line)
    quiet = max(spread(figures[name]) for name in (peers.BARE_BOOK, peers.BARE_READ))
    if quiet > _BUSY:
        lines.append(f"the machine was busy: rounds of a bare peer differ by {quiet:.1f} ×")
    return "\n".join(lines), ratios, medians


def door_target(medians: Mapping[str, Load], commits: Commits) -> tuple[str, bool]:
    """A scan at one of 8 busy doors, beside one durable commit of nothing else."""
    ratio = medians[peers.DOORS].p99 / commits.p99
    sentence = (
        f"8 doors: p99 of a scan {medians[peers.DOORS].p99:.2f} ms, {ratio:.1f} × that of one "
        f"durable commit ({commits.p99:.2f} ms), at most 5"
    )
    return sentence, ratio <= 5


def compare_ages(new: cost.Aged, old: cost.Aged) -> tuple[str, dict[str, float], dict[str, Load]]:
    """The table of the two boxes: time of one request, and how much longer the old one takes."""
    young, aged = (
        {name: median_of(loads) for name, loads in each.figures.items()} for each in (new, old)
    )
    head = f"{'µs of one request':<26}{'empty':>9}{'million':>9}{'times':>8}"
    lines = [f"{head}{'CPU µs':>11}{'million':>9}"]
    ratios: dict[str, float] = {}
    for name, load in aged.items():
        if name in young:
            longer = faster(new.figures[name], old.figures[name])
            ratios[f"{name}: million / empty"] = longer
            times = f"{1e6 / young[name].rate:>9.0f}{1e6 / load.rate:>9.0f}{longer:>8.2f}"
            lines.append(f"{name:<26}{times}{young[name].cpu_us:>11.0f}{load.cpu_us:>9.0f}")
        else:
            lines.append(f"{name:<26}{'':>9}{1e6 / load.rate:>9.0f}{'':>19}{load.cpu_us:>9.0f}")
    medians = {f"empty: {name}": load for name, load in young.items()}
    medians |= {f"million: {name}": load for name, load in aged.items()}
    return "\n".join(lines), ratios, medians


def targets(
    ratios: Mapping[str, float], medians: Mapping[str, Load], first_answer: float, rest: Idle
) -> list[tuple[str, bool]]:
    """What issue 2 asks of the figures, each held or missed."""
    found = [
        _at_least(ratios, f"{peers.BOOK} / PocketBase", 0.9),
        _at_least(ratios, f"{peers.BOOK} / bare", 0.25),
        _at_least(ratios, f"{peers.SCAN} / PocketBase", 1.0),
    ]
    ours, theirs = medians[peers.BOOK].p99, medians[peers.CREATE].p99
    found.append(
        (f"{peers.BOOK} p99 {ours:.1f} ms below PocketBase's {theirs:.1f} ms", ours < theirs)
    )
    for name in (cost.BOOK, cost.SCAN):
        ratio = ratios.get(f"{name}: million / empty")
        if ratio is not None:
            found.append(
                (
                    f"{name} with a million rows {ratio:.2f} × the empty time, at most 1.20",
                    ratio <= 1.2,
                )
            )
    found.append((f"first answer after {first_answer:.2f} s, under 1 s", first_answer < 1))
    found.append(
        (
            f"idle CPU {rest.cpu_ms / 100:.2f} %, {rest.voluntary_switches} wake-ups in 10 s",
            rest.cpu_ms < 10,
        )
    )
    return found


def write(target: Path, result: Mapping[str, object]) -> None:
    """One JSON document; no host name and no path of the machine in it."""
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=1, default=_as_json, ensure_ascii=False) + "\n")


def _at_least(ratios: Mapping[str, float], name: str, floor: float) -> tuple[str, bool]:
    return f"{name} {ratios[name]:.2f}, at least {floor:.2f}", ratios[name] >= floor


def _as_json(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(value)
