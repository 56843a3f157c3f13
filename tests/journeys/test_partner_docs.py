"""The guide's programs in Python and Node, run against a real box."""

import pytest

from tests.journeys.box_process import BoxProcess
from tests.journeys.partner_programs import (
    EXAMPLES,
    NODE,
    a_partner,
    check_listening,
    check_receiver,
    python,
)
from tests.journeys.program_scenarios import scenarios

BOOKING = {
    "python": (*python(), EXAMPLES / "python" / "book.py"),
    "node": (NODE, EXAMPLES / "node" / "book.mjs"),
}
RECEIVER = {
    "python": (*python(), EXAMPLES / "python" / "receiver.py"),
    "node": (NODE, EXAMPLES / "node" / "receiver.mjs"),
}
LISTEN = {
    "python": (*python(), EXAMPLES / "python" / "listen.py"),
    "node": (NODE, EXAMPLES / "node" / "listen.mjs"),
}


@pytest.fixture(scope="module")
def partner(tmp_path_factory):
    with a_partner(tmp_path_factory.mktemp("partner"), BoxProcess) as found:
        yield found


@scenarios
@pytest.mark.parametrize("language", BOOKING)
def test_each_booking_program_behaves_as_the_guide_says(partner, language, scenario):
    scenario(partner, *BOOKING[language])


@pytest.mark.parametrize("language", RECEIVER)
def test_each_receiver_program_accepts_genuine_deliveries_once_and_refuses_others(
    partner, language, tmp_path
):
    check_receiver(partner, RECEIVER[language], tmp_path)


@pytest.mark.parametrize("language", LISTEN)
def test_the_listen_program_passes_deliveries_to_a_handler_without_a_public_address(
    partner, language, tmp_path
):
    check_listening(partner, LISTEN[language], RECEIVER[language], tmp_path)
