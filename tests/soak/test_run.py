"""The runner of `make soak`: no failure is overlooked, and none stops the other steps."""

import json
import sys
import time
from pathlib import Path

import pytest

from tests.soak.plan import PLAN, PYTEST, Step
from tests.soak.run import ROOT, main, soak, table

pytestmark = [pytest.mark.slow, pytest.mark.process]

TELLING = "from tests.soak.scale import tell; tell('cuts', {}, goal={}, seed=7, found={!r})"
GOOD = TELLING.format(20, 20, [])


def python(name, source, seconds=60.0):
    return Step(name, f"what {name} tries", (sys.executable, "-c", source), seconds)


def test_each_step_is_run_and_told_in_a_table_and_as_json(tmp_path):
    outcomes = soak([python("one", GOOD), python("two", GOOD)], tmp_path)

    said = json.loads((tmp_path / "summary.json").read_text())
    assert [one.result for one in outcomes] == ["held", "held"]
    assert said["held"] is True
    assert [step["rows"][0]["count"] for step in said["steps"]] == [20, 20]
    assert "one" in table(outcomes)
    assert "seed 7" in (tmp_path / "one.log").read_text()


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (TELLING.format(20, 20, ["I2: two hold T1"]), "I2: two hold T1"),
        ("import sys; sys.exit(3)", "it ended with status 3: see its log"),
        ("pass", "nothing was tried"),
        (TELLING.format(9, 20, []), "only 9 of 20 cuts"),
    ],
)
def test_a_step_that_fails_fails_the_whole_and_stops_no_other(tmp_path, source, complaint):
    bad, good = soak([python("bad", source), python("good", GOOD)], tmp_path)

    assert (bad.result, good.result) == ("FAILED", "held")
    assert complaint in bad.violations
    assert complaint in table([bad, good])
    assert json.loads((tmp_path / "summary.json").read_text())["held"] is False


def test_a_step_that_does_not_end_in_time_is_ended_with_all_that_it_started(tmp_path):
    pid = tmp_path / "pid"
    source = (
        "import pathlib, subprocess; child = subprocess.Popen(['sleep', '600']);"
        f"pathlib.Path({str(pid)!r}).write_text(str(child.pid)); child.wait()"
    )

    [outcome] = soak([python("endless", source, seconds=2.0)], tmp_path)

    assert outcome.result == "FAILED"
    assert "did not end" in outcome.violations[0]
    started = Path(f"/proc/{pid.read_text()}")
    deadline = time.monotonic() + 60
    while started.exists() and "State:\tZ" not in (started / "status").read_text():
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("source", "seconds", "result", "held"),
    [(TELLING.format(15, 20, []), 60.0, "cut short", True), (GOOD, 0.0, "not run", False)],
)
def test_a_step_may_be_cut_short_and_one_that_did_not_run_has_not_held(
    tmp_path, source, seconds, result, held
):
    [outcome] = soak([python("slow", source)], tmp_path, seconds_in_all=seconds)

    assert (outcome.result, outcome.held) == (result, held)


def test_tests_that_fail_are_named(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_this_holds(): pass\ndef test_that(): assert 0\n")
    command = (*PYTEST, str(tmp_path / "test_it.py"))

    [outcome] = soak([Step("tests", "two", command, 60.0)], tmp_path)

    assert outcome.rows[0]["count"] == 2
    assert [one.rpartition("::")[2] for one in outcome.violations] == ["test_that"]


def test_every_path_of_the_plan_is_there_and_it_can_be_listed(capsys):
    paths = [word for step in PLAN for word in step.command if word.startswith("tests/")]

    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert main(["--list"]) == 0
    assert "kills" in capsys.readouterr().out
