from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.door.verdict import (
    COLOURS,
    LANGUAGES,
    OVERRIDABLE,
    FirstCheckIn,
    Seen,
    Verdict,
    judge,
    phrase,
    see,
)
from tests.unit.arrivals import a_guest

TONIGHT = date(2026, 11, 21)
ABOUT_NOBODY = {"unknown_code", "bad_signature", "wrong_venue", "test_code", "error"}
LEFT = {"left_at": 1, "status": "completed"}
FIRST = FirstCheckIn(1_795_287_600_000, "19:00", "Porte 1", None)


def decide(*, generation=0, arrivals=None, too_early=False, **changes) -> str:
    guest = a_guest(**({"date": TONIGHT.isoformat()} | changes))
    return judge(
        guest, generation=generation, arrivals=arrivals, tonight=TONIGHT, too_early=too_early
    )


@pytest.mark.parametrize(
    ("changes", "result"),
    [({"generation": 1, "status": "cancelled"}, "revoked"),
     ({"status": "cancelled", "date": "2026-11-20"}, "cancelled"),
     ({"status": "declined", "date": "2026-11-22"}, "declined"),
     ({"status": "requested", "date": "2026-11-20"}, "too_late"),
     ({"status": "requested", "date": "2026-11-22"}, "not_yet"),
     ({"status": "requested", "too_early": True}, "not_yet"),
     ({"status": "requested", "arrived": 2}, "not_confirmed"),
     ({"status": "pending", "arrived": 2}, "payment_due"),
     ({"status": "partial", "arrivals": 9}, "payment_due"),
     ({"arrived": 2, "checked_in_at": 1, "arrivals": 9}, "already_checked_in"),
     ({"arrived": 1, "checked_in_at": 1, "arrivals": 2}, "party_full"),
     ({"arrivals": 3}, "party_full"),
     ({"arrived": 1, "checked_in_at": 1, "arrivals": 1}, "party_added"),
     ({"arrived": 1, "checked_in_at": 1}, "party_added"), ({"arrivals": 2}, "checked_in"),
     ({"arrived": 2, "checked_in_at": 1, "people_out": 2, "arrivals": 1}, "came_back"),
     ({"arrived": 1, "checked_in_at": 1, "people_out": 1}, "came_back"),
     ({"arrived": 1, "checked_in_at": 1, "people_out": 1, "arrivals": 2}, "party_added"),
     ({"arrived": 2, "checked_in_at": 1, "people_out": 1, "arrivals": 2}, "party_full"),
     ({"arrived": 0, "people_out": 2}, "checked_in"),
     ({"arrived": 2, "people_out": 2, **LEFT}, "already_checked_in"),
     ({"arrived": 1, **LEFT}, "already_checked_in"),
     ({"status": "completed"}, "checked_in"), ({"generation": None}, "checked_in")],
)  # fmt: skip
def test_the_first_failing_check_decides_the_verdict(changes, result):
    assert decide(**changes) == result


def test_only_a_guest_known_to_the_box_can_be_let_in_anyway():
    assert OVERRIDABLE.isdisjoint(ABOUT_NOBODY | {"ambiguous"})
    assert {COLOURS[result] for result in OVERRIDABLE} == {"amber", "red"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("result", "seen"),
    [*((result, see(a_guest(), arrived=1)) for result in COLOURS),
     *((result, None) for result in sorted(ABOUT_NOBODY))],
)  # fmt: skip
def test_each_verdict_has_a_sentence_for_staff_and_for_the_guest_in_each_language(
    result, language, seen
):
    said = phrase(Verdict(result, seen, admitted=1, first_check_in=FIRST), language)

    assert said.staff
    assert said.guest
    assert "{" not in said.staff + said.guest


texts = st.text(max_size=20)
seen = st.builds(
    Seen, texts, texts, st.none() | texts, texts, texts, st.integers(1), st.integers(0), texts
)
verdicts = st.builds(
    Verdict,
    result=st.sampled_from(list(COLOURS)),
    reservation=st.none() | seen,
    admitted=st.integers(-9, 9),
    first_check_in=st.none()
    | st.builds(FirstCheckIn, st.integers(0), texts, st.none() | texts, st.none() | texts),
    candidates=st.lists(seen, max_size=3).map(tuple),
    overrode=st.none() | texts,
)


@given(verdicts)
def test_a_verdict_from_the_scan_log_equals_the_original(verdict):
    assert Verdict.from_json(verdict.to_json()) == verdict


def test_a_verdict_in_the_scan_log_contains_no_personal_data():
    kept = Verdict("checked_in", see(a_guest()), admitted=2).to_json()

    for personal in ("Salma", "Idrissi", "salma@example.com", "600", "fenêtre"):
        assert personal not in kept
