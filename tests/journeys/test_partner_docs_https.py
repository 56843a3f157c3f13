"""On a local network, the guide's programs trust the box only after the guide's commands."""

import pytest

from tests.journeys.house_box import a_house_box, check_trust
from tests.journeys.partner_programs import EXAMPLES, NODE, python

BOOKING = {
    "curl": ("bash", EXAMPLES / "curl" / "book.sh"),
    "python": (*python(), EXAMPLES / "python" / "book.py"),
    "node": (NODE, EXAMPLES / "node" / "book.mjs"),
}


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    with a_house_box(tmp_path_factory.mktemp("house")) as found:
        yield found


@pytest.mark.parametrize("language", BOOKING)
def test_a_program_books_over_https_once_it_knows_the_authority(box, language):
    check_trust(box, *BOOKING[language])


def test_before_that_nobody_talks_to_it(box):
    first_call = ("curl", "--silent", "--show-error", f"{box.secure}/v1/venue")

    refused = box.run(*first_call, trusting=False)

    assert refused.returncode == 60  # curl's status for an untrusted certificate
    assert refused.stdout == ""
