"""The figures for people: tables, and the targets that were held or missed."""

from collections.abc import Mapping, Sequence

from bench import growth, peers
from bench.growth import Aged
from bench.load import Load, faster, median_of, spread
from bench.standing import Idle

Target = tuple[str, bool]
_BUSY = 1.3
_AGAINST = {
    peers.BOOK: peers.BARE_BOOK,
    peers.READ: peers.BARE_READ,
    peers.PAGE: peers.BARE_PAGE,
    peers.SCAN: peers.BARE_SCAN,
}


def compare(figures: Mapping[str, list[Load]]) -> tuple[str, dict[str, float], dict[str, Load]]:
    """The table of the peers, its ratios, and the medians."""
    head = f"{'at 32 connections':<26}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU µs':>9}"
    lines = [f"{head}{'MiB':>7}{'× bare':>9}"]
    medians = {name: median_of(loads) for name, loads in figures.items()}
    ratios: dict[str, float] = {}
    for name, load in medians.items():
        line = f"{name:<26}{load.rate:>9,.0f}{load.p50:>9.2f}{load.p99:>9.2f}{load.cpu_us:>9.0f}"
        line += f"{load.memory_mib:>7.0f}"
        if name in _AGAINST:
            bare = faster(figures[name], figures[_AGAINST[name]])
            ratios[f"{name} / bare"] = bare
            line += f"{bare:>9.2f}"
        lines.append(line)
    quiet = unrest(figures)
    if quiet > _BUSY:
        lines.append(f"the machine was busy: rounds of a bare peer differ by {quiet:.1f} ×")
    return "\n".join(lines), ratios, medians


def unrest(figures: Mapping[str, list[Load]]) -> float:
    """How much the rounds of a bare peer differ: 1.0 on a machine that does nothing else."""
    return max(spread(figures[name]) for name in (peers.BARE_BOOK, peers.BARE_READ))


def compare_ages(boxes: Sequence[Aged]) -> tuple[str, dict[str, float]]:
    """The table of the boxes with more and more of a past; how much longer the oldest takes.

    CPU is what the box's process computed for one request: a busy neighbour hardly changes it.
    """
    young, old = boxes[0], boxes[-1]
    lines, ratios = [], {}
    for title, of in (("CPU µs of one request", "cpu_us"), ("p50 ms", "p50"), ("p99 ms", "p99")):
        head = "".join(f"{each.rows:>11,}" for each in boxes)
        lines.append(f"{title:<26}{head}{'oldest / empty':>16}")
        for name in young.figures:
            cells = [float(getattr(median_of(each.figures[name]), of)) for each in boxes]
            ratio = cells[-1] / cells[0]
            if of == "cpu_us":
                ratios[f"{name}: CPU, oldest / empty"] = ratio
            lines.append(
                f"{name:<26}" + "".join(f"{cell:>11.2f}" for cell in cells) + f"{ratio:>16.2f}"
            )
    starts = "".join(f"{min(each.starts):>11.2f}" for each in boxes)
    lines.append(f"{'start to first answer, s':<26}{starts}")
    for name in young.figures:
        if name != growth.DELIVERY:
            ratios[f"{name}: time, oldest / empty"] = faster(young.figures[name], old.figures[name])
    return "\n".join(lines), ratios


def age_targets(ratios: Mapping[str, float], rows: int) -> list[Target]:
    """What is asked of an old box."""
    found = []
    for name in (growth.BOOK, growth.SCAN):
        ratio = ratios[f"{name}: time, oldest / empty"]
        sentence = f"{name} with {rows:,} rows {ratio:.2f} × the empty time, at most 1.20"
        found.append((sentence, ratio <= 1.2))
    return found


def standing_targets(first_answer: float, rest: Idle) -> list[Target]:
    """What is asked of a box that starts, and of one at rest."""
    at_rest = f"idle CPU {rest.cpu_ms / 100:.2f} %, {rest.voluntary_switches} wake-ups in 10 s"
    return [
        (f"first answer after {first_answer:.2f} s, under 1 s", first_answer < 1),
        (at_rest, rest.cpu_ms < 10),
    ]
