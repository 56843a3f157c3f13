"""`make bench`: the box beside a plain team's booking and a bare handler, young and old.

Figures are ratios of one run on one machine; README.md beside this file says how they are
made. Ends with status 1 when an answer was wrong, whatever the figures.
"""

import argparse
import asyncio
import datetime as dt
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench import beside_plain, box, doors, growth, machine, outside, peers, publish, report
from bench import standing as at_rest
from bench import statements as statements_of
from bench.children import BenchError, Children
from bench.load import median_of, require_wrk
from bench.progress import Progress
from bench.rounds import fresh_copy, interleave

HERE = Path(__file__).parent
ON_A_BOX = ("plain", "peers", "standing", "growth")
OTHERS = ("statements", "doors", "dispatcher", "board", "door", "binary")
SCANS = 2_000  # of the eight doors, under each of their loads


@dataclass
class Run:
    """What was asked for, and what was found so far."""

    options: argparse.Namespace
    progress: Progress = field(default_factory=Progress)
    result: dict[str, object] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    targets: list[report.Target] = field(default_factory=list)

    def wants(self, part: str) -> bool:
        """Whether this part is measured."""
        return self.options.only in (None, part)


def main() -> int:
    """Runs everything in a directory of its own, on this disk, and clears it away."""
    run = Run(_options())
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clears up as Ctrl-C does
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=data))
    try:
        run.result["date"] = dt.datetime.now(dt.UTC).date().isoformat()
        run.result["machine"] = machine.describe(folder)
        run.result |= {"load_before": os.getloadavg()[0], "rounds": run.options.rounds}
        run.progress.say(f"machine {run.result['machine']}")
        if any(run.wants(part) for part in ON_A_BOX):
            with Children(folder).all_ended() as children:
                _on_a_box(run, children, folder)
        _others(run, folder)
    except (BenchError, KeyboardInterrupt) as trouble:
        _show(run)  # half a run is not kept, and not lost either
        print(f"\nbench: {str(trouble) or 'interrupted'}", file=sys.stderr, flush=True)
        return 1
    finally:
        shutil.rmtree(folder)
    _finish(run)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of the peers")
    parser.add_argument("--seconds", type=int, default=5, help="of one booking load")
    parser.add_argument("--past", type=int, default=1_000_000, help="past reservations at most")
    parser.add_argument("--only", choices=[*ON_A_BOX, *OTHERS], help="this part alone")
    parser.add_argument("--full", action="store_true", help="the dispatcher with 10,000 events")
    parser.add_argument("--publish", action="store_true", help="keep the figures in the project")
    options = parser.parse_args()
    if options.publish and options.only:
        parser.error("only a run of every part can be published")
    return options


def _on_a_box(run: Run, children: Children, folder: Path) -> None:
    """Prepares a box, and measures what needs one."""
    require_wrk()
    run.progress.say("preparing the box: venue, partner, terminal, endpoint, tonight's guests")
    prepared = box.prepare(children, folder, peers.serve_receiver(children))
    if run.wants("standing"):
        run.progress.say("start and rest")
        first_answer = at_rest.seconds_to_first_answer(children, prepared)
        rest = at_rest.idle(children, prepared)
        run.result |= {"first_answer_s": first_answer, "idle": rest}
        run.tables.append(f"first answer after {first_answer:.2f} s; idle for 10 s: {rest}")
        run.targets += report.standing_targets(first_answer, rest)
    if run.wants("plain"):
        table, ratios, targets = beside_plain.measure(
            children, prepared, folder, run.options.rounds, run.options.seconds, run.progress
        )
        run.tables.append(table)
        run.targets += targets
        run.result |= {"plain": table.splitlines(), "plain_ratios": ratios}
    if run.wants("peers"):
        _peers(run, children, folder, prepared)
    if run.wants("growth"):
        run.progress.say(f"growth: up to {run.options.past:,} past reservations")
        boxes = growth.measure(children, prepared, folder, run.options.past, run.progress)
        table, ratios = report.compare_ages(boxes)
        run.tables.append(table)
        run.targets += report.age_targets(ratios, boxes[-1].rows)
        run.result["growth_ratios"] = ratios
        run.result["growth_starts"] = {str(each.rows): min(each.starts) for each in boxes}
        run.result["growth"] = {
            name: {str(each.rows): median_of(each.figures[name]) for each in boxes}
            for name in boxes[0].figures
        }


def _peers(run: Run, children: Children, folder: Path, prepared: box.Prepared) -> None:
    commits = machine.durable_commits(folder)
    run.progress.say(f"one durable commit after the other: {commits.per_second:,.0f}/s, "
                     f"p50 {commits.p50:.2f} ms, p99 {commits.p99:.2f} ms")  # fmt: skip
    samples = peers.take_samples(children, prepared, fresh_copy(prepared.folder, folder / "round"))
    steps = peers.steps(children, prepared, samples, run.options.seconds)
    figures = interleave(steps, run.options.rounds, children, folder, run.progress)
    table, ratios, medians = report.compare(figures)
    run.tables.append(table)
    run.result |= {
        "durable_commits": commits,
        "rounds_differ_by": report.unrest(figures),
        "loads": medians,
        "ratios": ratios,
    }


def _others(run: Run, folder: Path) -> None:
    """What needs no prepared box."""
    if run.wants("statements"):
        run.progress.say("the statements of a request, on a young box and on one with 3,000 past")
        run.result["statements_grown"] = asyncio.run(_statements(run, folder))
    if run.wants("doors"):
        run.progress.say("eight doors beside a durable commit")
        (folder / "doors").mkdir()
        run.result["doors"], held = doors.measure(folder / "doors", SCANS, seed=1)
        run.targets += held
    if run.wants("dispatcher"):
        run.progress.say("the delivery engine")
        rows = outside.dispatcher(full=run.options.full)
        run.result["dispatcher"] = [[what, target, found] for what, target, found, _ in rows]
        run.targets += [
            (f"{what} {found}, asked {target}", held) for what, target, found, held in rows
        ]
    others = {"board": outside.board, "door": outside.door_app, "binary": outside.binary}
    for part, measure in others.items():
        if run.wants(part):
            run.progress.say(part)
            run.result[part] = measure()


async def _statements(run: Run, folder: Path) -> list[str]:
    young, old = folder / "young", folder / "old"
    young.mkdir()
    old.mkdir()
    found = await statements_of.measure(old, 3_000)
    grown = statements_of.grown(await statements_of.measure(young, 0), found)
    if run.options.only == "statements":
        run.tables.append(statements_of.table(found))
    run.targets.append(("no request takes more steps of SQLite on an older box", not grown))
    return grown


def _show(run: Run) -> None:
    print("\n" + "\n\n".join(run.tables) + "\n")
    for sentence, holds in run.targets:
        print(f"{'holds ' if holds else 'MISSED'}  {sentence}", flush=True)


def _finish(run: Run) -> None:
    _show(run)
    run.result["targets"] = dict(run.targets)
    if run.options.only is None:
        target = publish.RESULTS if run.options.publish else HERE / "data"
        written = publish.write(target, run.result)
        print(f"\nwritten: {written.relative_to(outside.ROOT)}")
        if run.options.publish:
            publish.publish(written)


if __name__ == "__main__":
    sys.exit(main())
