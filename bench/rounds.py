"""The rounds: every peer in turn, each on a fresh copy of its data and alone on the machine."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.children import BenchError, Child, Children
from bench.load import CONNECTIONS, Load, run_load
from bench.progress import Progress

WARM_UP_SECONDS = 1
Check = Callable[[Path, int, int], None]


@dataclass(frozen=True)
class Step:
    """One load on one peer.

    `check` gets the data of the stopped peer, the number of requests it answered and the
    number of loads; `supply` is how many fresh bookings or passes there are.
    """

    name: str
    template: Path | None
    serve: Callable[[Path], Child]
    script: str
    environment: Mapping[str, str]
    seconds: int
    check: Check | None = None
    supply: int | None = None
    connections: int = CONNECTIONS


def interleave(
    steps: Sequence[Step], rounds: int, children: Children, folder: Path, progress: Progress
) -> dict[str, list[Load]]:
    """A B C A B C …: a machine that slows down slows everybody down."""
    figures: dict[str, list[Load]] = {step.name: [] for step in steps}
    for number in range(1, rounds + 1):
        progress.say(f"round {number} of {rounds}")
        for step in steps:
            load = _take(step, children, folder)
            figures[step.name].append(load)
            progress.load(step.name, load)
    return figures


def _take(step: Step, children: Children, folder: Path) -> Load:
    data = fresh_copy(step.template, folder / "round")
    child = step.serve(data)
    warm, load = warm_and_measure(
        child, step.script, step.seconds, step.environment, connections=step.connections
    )
    children.stop(child)
    if step.supply is not None and load.reached > step.supply:
        raise BenchError(f"{step.name} used up its {step.supply} fresh numbers: shorten the rounds")
    if step.check is not None:
        step.check(data, warm.requests + load.requests, 2)
    return load


def warm_and_measure(
    child: Child,
    script: str,
    seconds: int,
    environment: Mapping[str, str],
    start: int = 0,
    connections: int = CONNECTIONS,
) -> tuple[Load, Load]:
    """Two loads, on numbers of the plan that follow each other from `start` on."""
    warm = run_load(child, script, WARM_UP_SECONDS, environment, start, connections)
    return warm, run_load(child, script, seconds, environment, warm.reached, connections)


def fresh_copy(template: Path | None, target: Path) -> Path:
    """A copy of prepared data, all of it on the disk before anything is measured."""
    shutil.rmtree(target, ignore_errors=True)
    if template is None:
        target.mkdir()
    else:
        shutil.copytree(template, target)
    os.sync()
    return target
