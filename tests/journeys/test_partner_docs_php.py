"""The guide's programs in PHP, against a real box. `make test` leaves this out without php."""

import pytest

from tests.journeys.box_process import BoxProcess
from tests.journeys.house_box import a_house_box, check_trust
from tests.journeys.partner_programs import (
    EXAMPLES,
    a_partner,
    check_booking,
    check_receiver,
    check_refusal,
)
from tests.journeys.program_restarts import (
    check_correction,
    check_restart,
    check_restart_in_a_full_house,
    check_restart_too_late,
    check_restart_with_a_wrong_key,
)
from tests.journeys.program_roads import check_rough_road, check_torn_road

BOOK = ("php", EXAMPLES / "php" / "book.php")
RECEIVE = ("php", "-S", "127.0.0.1:{port}", EXAMPLES / "php" / "receiver.php")


@pytest.fixture(scope="module")
def partner(tmp_path_factory):
    with a_partner(tmp_path_factory.mktemp("partner"), BoxProcess) as found:
        yield found


def test_a_program_books_once_however_often_it_runs_and_moves_on_to_a_free_table(partner):
    check_booking(partner, *BOOK)


def test_when_the_answer_is_lost_the_same_booking_is_asked_for_until_it_is_told(partner):
    check_rough_road(partner, *BOOK)


def test_half_an_answer_is_none_nor_is_a_proxys_page(partner):
    check_torn_road(partner, *BOOK)


def test_a_program_that_starts_again_asks_for_the_same_booking_again(partner):
    check_restart(partner, *BOOK)


def test_a_program_that_starts_again_in_a_full_house_has_its_table(partner):
    check_restart_in_a_full_house(partner, *BOOK)


def test_a_program_that_starts_again_too_late_books_another_table_once(partner):
    check_restart_too_late(partner, *BOOK)


def test_a_program_that_starts_again_with_a_wrong_key_keeps_what_it_asked_for(partner):
    check_restart_with_a_wrong_key(partner, *BOOK)


def test_a_program_that_was_refused_asks_anew_when_it_is_corrected(partner):
    check_correction(partner, *BOOK)


def test_a_program_says_the_code_of_a_refusal(partner):
    check_refusal(partner, *BOOK)


def test_a_receiver_takes_what_is_genuine_once_and_refuses_the_rest(partner, tmp_path):
    check_receiver(partner, RECEIVE, tmp_path)


def test_in_the_house_a_program_books_over_https_once_it_knows_the_authority(tmp_path):
    with a_house_box(tmp_path) as box:
        check_trust(box, *BOOK)
