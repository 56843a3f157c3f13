"""The guide's programs in Python and Node do what the guide says, against a real box."""

import pytest

from tests.journeys.box_process import BoxProcess
from tests.journeys.partner_programs import (
    EXAMPLES,
    NODE,
    a_partner,
    check_booking,
    check_receiver,
    check_refusal,
    python,
)
from tests.journeys.program_restarts import (
    check_correction,
    check_restart,
    check_restart_in_a_full_house,
    check_restart_too_late,
    check_restart_with_a_wrong_key,
)
from tests.journeys.program_roads import check_rough_road, check_torn_road

BOOKING = {
    "python": (*python(), EXAMPLES / "python" / "book.py"),
    "node": (NODE, EXAMPLES / "node" / "book.mjs"),
}
RECEIVER = {
    "python": (*python(), EXAMPLES / "python" / "receiver.py"),
    "node": (NODE, EXAMPLES / "node" / "receiver.mjs"),
}


@pytest.fixture(scope="module")
def partner(tmp_path_factory):
    with a_partner(tmp_path_factory.mktemp("partner"), BoxProcess) as found:
        yield found


@pytest.mark.parametrize("language", BOOKING)
def test_a_program_books_once_however_often_it_runs_and_moves_on_to_a_free_table(partner, language):
    check_booking(partner, *BOOKING[language])


@pytest.mark.parametrize("language", BOOKING)
def test_when_the_answer_is_lost_the_same_booking_is_asked_for_until_it_is_told(partner, language):
    check_rough_road(partner, *BOOKING[language])


@pytest.mark.parametrize("language", BOOKING)
def test_half_an_answer_is_none_nor_is_a_proxys_page(partner, language):
    check_torn_road(partner, *BOOKING[language])


@pytest.mark.parametrize("language", BOOKING)
def test_a_program_that_starts_again_asks_for_the_same_booking_again(partner, language):
    check_restart(partner, *BOOKING[language])


@pytest.mark.parametrize("language", BOOKING)
def test_a_program_that_starts_again_in_a_full_house_has_its_table(partner, language):
    check_restart_in_a_full_house(partner, *BOOKING[language])


@pytest.mark.parametrize("language", BOOKING)
def test_a_program_that_starts_again_too_late_books_another_table_once(partner, language):
    check_restart_too_late(partner, *BOOKING[language])


@pytest.mark.parametrize("language", BOOKING)
def test_a_program_that_starts_again_with_a_wrong_key_keeps_what_it_asked_for(partner, language):
    check_restart_with_a_wrong_key(partner, *BOOKING[language])


@pytest.mark.parametrize("language", BOOKING)
def test_a_program_that_was_refused_asks_anew_when_it_is_corrected(partner, language):
    check_correction(partner, *BOOKING[language])


@pytest.mark.parametrize("language", BOOKING)
def test_a_program_says_the_code_of_a_refusal(partner, language):
    check_refusal(partner, *BOOKING[language])


@pytest.mark.parametrize("language", RECEIVER)
def test_a_receiver_takes_what_is_genuine_once_and_refuses_the_rest(partner, language, tmp_path):
    check_receiver(partner, RECEIVER[language], tmp_path)
