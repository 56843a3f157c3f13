"""How a guest is addressed: by the name that is given to them, not by half of it."""

import pytest

from appliance.mail.words import name_to_greet
from tests.appliance.arrivals import a_guest


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Salma Bennani", "Salma"),
        ("عبد الرحمن العلوي", "عبد الرحمن"),
        ("Abd El Kader Tazi", "Abd El Kader"),
        ("Abdelkader Tazi", "Abdelkader"),
        ("Abou Bakr Sqalli", "Abou Bakr"),
        ("عبد الرحمن", "عبد الرحمن"),
        ("Aïcha", "Aïcha"),
        ("", None),
    ],
)
def test_a_guest_is_addressed_by_the_whole_given_name(name, given):
    assert a_guest(customer_name=name).customer_given_name == given


def test_a_name_of_several_words_is_greeted_in_letters():
    assert name_to_greet("عبد الرحمن") == "عبد الرحمن"
