"""The guide's programs in PHP, run against a real box; skipped without php."""

import pytest

from tests.journeys.box_process import BoxProcess
from tests.journeys.house_box import a_house_box, check_trust
from tests.journeys.partner_programs import EXAMPLES, a_partner, check_receiver
from tests.journeys.program_scenarios import scenarios

BOOK = ("php", EXAMPLES / "php" / "book.php")
RECEIVE = ("php", "-S", "127.0.0.1:{port}", EXAMPLES / "php" / "receiver.php")


@pytest.fixture(scope="module")
def partner(tmp_path_factory):
    with a_partner(tmp_path_factory.mktemp("partner"), BoxProcess) as found:
        yield found


@scenarios
def test_the_php_booking_program_behaves_as_the_guide_says(partner, scenario):
    scenario(partner, *BOOK)


def test_the_php_receiver_accepts_genuine_deliveries_once_and_refuses_others(partner, tmp_path):
    check_receiver(partner, RECEIVE, tmp_path)


def test_the_php_program_books_over_https_on_the_lan_once_it_trusts_the_authority(tmp_path):
    with a_house_box(tmp_path) as box:
        check_trust(box, *BOOK)
