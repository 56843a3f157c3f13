"""That the past costs nothing: counted in steps of SQLite, which no busy machine changes."""

from bench.statements import grown, measure

PAST = 3_000  # reservations of eight evenings: a step for each of them would show


async def test_no_request_takes_more_steps_on_a_box_with_a_past(tmp_path_factory):
    young = await measure(tmp_path_factory.mktemp("young"), 0)

    old = await measure(tmp_path_factory.mktemp("old"), PAST)

    assert set(young) == {"POST", "scan", "evening list", "list page", "availability"}
    assert grown(young, old) == []
