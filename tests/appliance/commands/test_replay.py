"""`venuebox replay`, with the box off."""

import pytest

from appliance.clock import parse_instant
from tests.appliance.commands.test_commands import transaction

DAYS = ("2026-11-19T23:59:59Z", "2026-11-20T00:00:00Z", "2026-11-21T23:59:59Z",
        "2026-11-22T00:00:00Z")  # fmt: skip


@pytest.fixture
def queued(box):
    """Four dead deliveries of e-1 on those days, a delivered one of it, a dead one of e-2."""
    with transaction(box) as tx:
        for id_ in ("e-1", "e-2"):
            tx.insert("endpoint", {"id": id_, "url": "https://x.example", "events": "[]",
                                   "active": 1, "created_at": 0, "secret": b""})  # fmt: skip
        rows = [("e-1", "dead", day) for day in DAYS]
        rows += [("e-1", "delivered", DAYS[1]), ("e-2", "dead", DAYS[1])]
        for number, (endpoint_id, state, day) in enumerate(rows, 1):
            at = parse_instant(day)
            seq = tx.insert("event", {"type": "webhook.test", "occurred_at": at})
            tx.insert("delivery", {"id": f"d-{number}", "endpoint_id": endpoint_id, "due_at": at,
                                   "event_seq": seq, "state": state, "attempts": 6,
                                   "finished_at": at})  # fmt: skip
    return box


def pending(box):
    with transaction(box) as tx:
        rows = tx.rows("SELECT id, attempts, replays FROM delivery WHERE state = 'pending'")
        return {id_ for id_, attempts, replays in rows if (attempts, replays) == (0, 1)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--delivery", "d-5"), {"d-5"}),
        (("--endpoint", "e-1"), {"d-1", "d-2", "d-3", "d-4"}),
        (("--endpoint", "e-1", "--dead"), {"d-1", "d-2", "d-3", "d-4"}),
        (("--endpoint", "e-1", "--all"), {"d-1", "d-2", "d-3", "d-4", "d-5"}),
        (("--endpoint", "e-1", "--from", "2026-11-20", "--to", "2026-11-21"), {"d-2", "d-3"}),
        (("--endpoint", "e-1", "--from", "2026-11-21T23:59:59Z"), {"d-3", "d-4"}),
        (("--endpoint", "e-1", "--to", "2026-11-21T00:00+01:00", "--all"), {"d-1", "d-2", "d-5"}),
        (("--endpoint", "e-2", "--from", "2026-11-21"), set()),
    ],
)
def test_what_is_named_is_due_again_and_nothing_else(queued, words, expected):
    answer = queued.json("replay", "--environment", "live", *words)

    assert answer == {"replayed": len(expected)}
    assert pending(queued) == expected


def test_twice_is_once(queued):
    words = ("replay", "--environment", "live", "--endpoint", "e-1")

    assert [queued.json(*words), queued.json(*words)] == [{"replayed": 4}, {"replayed": 0}]
    assert pending(queued) == {"d-1", "d-2", "d-3", "d-4"}


def test_without_json_it_says_how_many(queued):
    assert queued("replay", "--environment", "live", "--endpoint", "e-1") == 0

    assert queued.out == "4 deliveries are sent once more\n"


@pytest.mark.parametrize(
    ("words", "sentence", "status"),
    [
        (("--delivery", "d-0"), "no delivery d-0 in live: venuebox deliveries", 1),
        (("--endpoint", "e-0"), "no endpoint e-0 in live: venuebox endpoint list", 1),
        (("--delivery", "d-1", "--all"), "choose among those of an --endpoint", 2),
        (("--endpoint", "e-1", "--from", "yesterday"), "--from is 'yesterday'", 2),
        (("--endpoint", "e-1", "--to", "2026-11-21T19:00"), "--to is '2026-11-21T19:00'", 2),
        (("--endpoint", "e-1", "--from", "2026-11-22", "--to", "2026-11-20"), "is not before", 2),
    ],
)
def test_what_cannot_be_done_is_one_sentence(queued, words, sentence, status):
    assert sentence in queued.complaint("replay", "--environment", "live", *words, status=status)

    assert pending(queued) == set()


def test_an_endpoint_that_is_off_is_not_replayed_to(queued):
    with transaction(queued) as tx:
        tx.execute("UPDATE endpoint SET active = 0")

    for words in (("--delivery", "d-1"), ("--endpoint", "e-1")):
        complaint = queued.complaint("replay", "--environment", "live", *words)
        assert "deactivated: activate it first" in complaint


@pytest.mark.parametrize("words", [(), ("--delivery", "d-1", "--endpoint", "e-1")])
def test_one_or_many_has_to_be_said(queued, words):
    queued.complaint("replay", "--environment", "live", *words, status=2)
