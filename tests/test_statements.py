"""That the past costs nothing: counted in steps of SQLite, which no busy machine changes."""

import pytest

from bench.statements import Kinds, Statement, grown, measure

PAST = 3_000  # reservations of eight evenings: a step for each of them would show


def kinds(**changes) -> Kinds:
    members = {"sql": "SELECT 1", "plan": "SEARCH t", "runs": 5, "steps": 100, **changes}
    return {"POST": {"SELECT 1": Statement(**members)}}


async def test_no_request_takes_more_steps_on_a_box_with_a_past(tmp_path_factory):
    young = await measure(tmp_path_factory.mktemp("young"), 0)

    old = await measure(tmp_path_factory.mktemp("old"), PAST)

    assert set(young) == {"POST", "scan", "evening list", "list page", "availability"}
    assert grown(young, old) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 5 * 3_000}, "20 steps grew to 3000"),
        ({"plan": "SCAN t"}, "SEARCH t became SCAN t"),
    ],
)
def test_a_statement_that_reads_the_past_is_named(changes, said):
    found = grown(kinds(), kinds(**changes))

    assert len(found) == 1
    assert said in found[0]


def test_a_statement_that_only_the_old_box_runs_is_named():
    assert grown({"POST": {}}, kinds()) == ["POST: only the old box runs SELECT 1"]
