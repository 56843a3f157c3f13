"""`make bench`: the box beside a bare handler and PocketBase, young and old, busy and idle.

Figures are ratios of one run on one machine; README.md beside this file says how they are
made. Ends with status 1 when an answer was wrong, whatever the figures.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from appliance.store.connection import check_pages
from tests.bench import box, cost, machine, peers, pocketbase, report, standing
from tests.bench.children import BenchError, Children
from tests.bench.load import require_wrk
from tests.bench.progress import Progress
from tests.bench.rounds import fresh_copy, interleave

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def main() -> int:
    """Runs everything in a directory of its own, on this disk, and clears it away."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=6, help="of one booking load")
    parser.add_argument("--past", type=int, default=1_000_000, help="past reservations; 0: none")
    parser.add_argument("--only", choices=["dispatcher"], help="this part alone")
    parser.add_argument("--full", action="store_true", help="the dispatcher with 10,000 events")
    options = parser.parse_args()
    if options.only == "dispatcher":
        return measure_dispatcher(full=options.full)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clears up as Ctrl-C does
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=data))
    try:
        with Children(folder).all_ended() as children:
            run(children, folder, options.rounds, options.seconds, options.past)
    except (BenchError, KeyboardInterrupt) as trouble:
        print(f"\nbench: {str(trouble) or 'interrupted'}", file=sys.stderr, flush=True)
        return 1
    finally:
        shutil.rmtree(folder)
    print()
    return measure_dispatcher(full=options.full)


def measure_dispatcher(*, full: bool) -> int:
    """The delivery engine, in a process of its own; its exit status."""
    argv = [sys.executable, "-m", "tests.bench.dispatcher", *(["--full"] if full else [])]
    return subprocess.run(argv, cwd=ROOT, check=False).returncode


def run(children: Children, folder: Path, rounds: int, seconds: int, past_rows: int) -> None:
    """Prepares, measures, prints."""
    require_wrk()
    progress = Progress()
    commits = machine.durable_commits(folder)
    result: dict[str, object] = {
        "machine": machine.describe(folder),
        "pocketbase": pocketbase.version(),
        "durable_commits": commits,
    }
    progress.say(f"machine {result['machine']}")
    progress.say(f"one durable commit after the other: {commits.per_second:,.0f}/s, "
                 f"p50 {commits.p50:.2f} ms, p99 {commits.p99:.2f} ms")  # fmt: skip

    check_pages()  # rows that the bench writes into a stopped box need the box's checksums
    progress.say("preparing the box: venue, partner, terminal, endpoint, tonight's guests")
    prepared = box.prepare(children, folder, peers.serve_receiver(children))
    samples = peers.take_samples(children, prepared, fresh_copy(prepared.folder, folder / "round"))
    progress.say("preparing PocketBase")
    pocketbase.prepare(children, folder / "pocketbase")

    progress.say("start and rest")
    first_answer = standing.seconds_to_first_answer(children, prepared)
    rest = standing.idle(children, prepared)
    steps = peers.steps(children, prepared, folder / "pocketbase", samples, seconds)
    figures = interleave(steps, rounds, children, folder, progress)
    table, ratios, medians = report.compare(figures)
    tables = [table]
    if past_rows:
        progress.say(f"an old box: {past_rows:,} past reservations, written row by row")
        ages = cost.measure(children, prepared, folder, past_rows, rounds, progress)
        table, more, loads = report.compare_ages(*ages)
        tables.append(table)
        ratios, medians = ratios | more, medians | loads
    held = report.targets(ratios, medians, first_answer, rest)
    held.append(report.door_target(medians, commits))
    result |= {
        "ratios": ratios,
        "loads": medians,
        "rounds": figures,
        "first_answer_s": first_answer,
        "idle": rest,
    }
    result["targets"] = dict(held)
    report.write(HERE / "results" / "latest.json", result)
    _print(tables, held, rest)


def _print(tables: list[str], held: list[tuple[str, bool]], rest: standing.Idle) -> None:
    print("\n" + "\n\n".join(tables))
    print(f"\nidle for 10 s: {rest}\n")
    for sentence, holds in held:
        print(f"{'holds ' if holds else 'MISSED'}  {sentence}")


if __name__ == "__main__":
    sys.exit(main())
