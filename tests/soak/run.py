"""`make soak`: run every step and print a table of the results.

`python -m tests.soak.run [--only NAME …] [--list]` exits with status 0 if every step passed. A
failed step does not stop the others. Output, figures and the table are kept in `build/soak/`.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.soak.plan import PLAN

ROOT = Path(__file__).parents[2]
SCRATCH = ROOT / "build" / "soak"
SECONDS_IN_ALL = 3540.0  # nothing runs longer than 59 minutes
AFTER_THE_END = 5.0  # seconds to end in order


@dataclass
class Outcome:
    """The result of a step."""

    step: str
    tries: str
    seconds: float = 0.0
    result: str = "not run"
    rows: list = field(default_factory=list)  # rows that `tell` has written
    violations: list = field(default_factory=list)

    @property
    def held(self):
        return self.result in {"held", "cut short"}


def main(argv=None):
    names = [step.name for step in PLAN]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=names, metavar="NAME")
    parser.add_argument("--list", action="store_true")
    chosen = parser.parse_args(argv)
    steps = [step for step in PLAN if not chosen.only or step.name in chosen.only]
    if chosen.list:
        for step in steps:
            print(f"{step.name:12} {step.tries} (at most {step.seconds / 60:.0f} min)")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    outcomes = soak(steps, SCRATCH)
    print(table(outcomes))
    return 0 if all(one.held for one in outcomes) else 1


def soak(steps, scratch, seconds_in_all=SECONDS_IN_ALL):
    """Run the steps. Return their results in order, which are also in `summary.json`."""
    scratch.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + seconds_in_all
    outcomes = [Outcome(step.name, step.tries) for step in steps]
    pairs = list(zip(steps, outcomes, strict=True))
    running = set()
    asleep = [
        threading.Thread(target=run_step, args=(step, outcome, scratch, until, running))
        for step, outcome in pairs
        if step.beside
    ]
    for thread in asleep:
        thread.start()
    try:
        for step, outcome in pairs:
            if not step.beside:
                run_step(step, outcome, scratch, until, running)
        for thread in asleep:
            thread.join()
    finally:
        for child in list(running):
            end(child)
    said = {
        "machine": {"processors": os.cpu_count(), "system": " ".join(os.uname()[::2])},
        "seconds": round(seconds_in_all - (until - time.monotonic()), 1),
        "held": all(one.held for one in outcomes),
        "steps": [vars(one) for one in outcomes],
    }
    (scratch / "summary.json").write_text(json.dumps(said, indent=1) + "\n", "utf-8")
    return outcomes


def run_step(step, outcome, scratch, until, running):
    """Run one step in its own process, which is ended after its time limit."""
    room = min(step.seconds, until - time.monotonic())
    if room <= 0:
        return
    figures, report = scratch / f"{step.name}.figures", scratch / f"{step.name}.xml"
    for old in (figures, report):
        old.unlink(missing_ok=True)
    command = [*step.command, *([f"--junitxml={report}"] if "pytest" in step.command else [])]
    environ = {**os.environ, "SOAK": "1", "SOAK_FIGURES": str(figures), "PYTHONUNBUFFERED": "1"}
    print(f"\n== {step.name}: {step.tries} (at most {step.seconds / 60:.0f} min)", flush=True)
    begun = time.monotonic()
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace",
    ) as child:  # fmt: skip
        late = threading.Event()
        alarm = threading.Timer(room, end_late, (child, late))
        alarm.start()
        running.add(child)
        with (scratch / f"{step.name}.log").open("w", encoding="utf-8") as log:
            try:
                for line in child.stdout:
                    log.write(line)
                    print(f"{step.name}: {line}", end="", flush=True)
            except BaseException:
                alarm.cancel()
                end(child)
                raise
        status = child.wait()
        alarm.cancel()
        running.discard(child)
    outcome.seconds = round(time.monotonic() - begun, 1)
    judge(
        outcome,
        status,
        in_time=not late.is_set(),
        told=read_rows(figures),
        passed=read_tests(report),
    )


def end_late(child, late):
    """End a step whose time limit has passed."""
    late.set()
    end(child)


def end(child):
    """Ask the step and its child processes to end, then kill them."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(AFTER_THE_END)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def judge(outcome, status, *, in_time, told, passed):
    """Return every reason why the step failed."""
    outcome.rows = [*told, passed] if passed["count"] or not told else told
    outcome.violations = [one for row in [*told, passed] for one in row["violations"]]
    short = [row for row in outcome.rows if row["count"] < row["goal"]]
    if not in_time:
        outcome.violations.append(f"it did not end within {outcome.seconds:.0f} s and was ended")
    if status != 0 and not outcome.violations:
        outcome.violations.append(f"it ended with status {status}: see its log")
    hardly = [row for row in short if row["count"] * 2 < row["goal"]]
    outcome.violations += [f"only {r['count']} of {r['goal']} {r['what']}" for r in hardly]
    if not sum(row["count"] for row in outcome.rows):
        outcome.violations.append("nothing was tried")
    outcome.result = "FAILED" if outcome.violations else "cut short" if short else "held"


def read_rows(file):
    """Return the figures that the step reported, added up by row."""
    if not file.exists():
        return []
    merged = {}
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        same = merged.setdefault(row["what"], row)
        if same is not row:
            for number in ("count", "goal"):
                same[number] += row[number]
            same["violations"] += row["violations"]
            same["seed"] = ", ".join(dict.fromkeys([*same["seed"].split(", "), row["seed"]]))
    return list(merged.values())


def read_tests(file):
    """Return the tests of the step as a row."""
    names, wrong = 0, []
    if file.exists():
        for case in ET.parse(file).iter("testcase"):  # noqa: S314 - pytest wrote it just now
            names += 1
            if any(case.find(kind) is not None for kind in ("failure", "error")):
                wrong.append(f"{case.get('classname')}::{case.get('name')}")
    return {"what": "tests", "count": names, "goal": names, "seed": "", "violations": wrong}


def table(outcomes, scratch=SCRATCH):
    """Return the results of the whole soak as a table that fits on a screen."""
    form = "{:12}  {:45}  {:>22}  {:>10}  {:>7}  {:10}  {}"
    lines = [form.format("step", "tried", "count", "violations", "seconds", "result", "seed")]
    for one in outcomes:
        for row in one.rows or [{"what": one.tries, "count": 0, "goal": 0, "seed": ""}]:
            of = f"{row['count']:,}"
            if row["count"] < row["goal"]:
                of += f" of {row['goal']:,}"
            lines.append(form.format(one.step, row["what"], of, len(one.violations),
                                     round(one.seconds), one.result, row["seed"]))  # fmt: skip
    lines += [f"{one.step}: {wrong}" for one in outcomes for wrong in one.violations]
    minutes = sum(one.seconds for one in outcomes) / 60
    return "\n".join(["", *lines, "", f"{minutes:.0f} minutes of steps, kept in {scratch}"])


if __name__ == "__main__":
    sys.exit(main())
