"""On a local network, the guide's programs trust the box after the guide's commands."""

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
def test_a_program_that_trusts_the_boxs_authority_books_over_https(box, language):
    check_trust(box, *BOOKING[language])


def test_programs_refuse_https_before_they_trust_the_authority(box):
    first_call = ("curl", "--silent", "--show-error", f"{box.secure}/v1/venue")

    refused = box.run(*first_call, trusting=False)

    assert refused.returncode == 60  # curl's status for an untrusted certificate
    assert refused.stdout == ""
