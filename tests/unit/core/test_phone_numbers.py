"""Phone numbers are converted to one format from any typed one."""

import pytest

from appliance.core.phone_numbers import (
    contains,
    country_of,
    ends_or_equals,
    find_numbers,
    is_same,
    spell_number,
)

MOBILE, LANDLINE = "+212612345678", "+212524000000"
ONE = """
0612345678|06 12 34 56 78|06-12-34-56-78|06.12.34.56.78|06/12/34/56/78|06_12_34_56_78|612345678
+212612345678|+212 6 12 34 56 78|+212(0)612345678|+212 (0)6 12 34 56 78|+212 06 12 34 56 78
00212612345678|00 212 6 12 34 56 78|212612345678|(+212) 612345678|(06) 12 34 56 78|+212/612345678
tel:+212612345678|06 12 34 56 78 (Ahmed)|WhatsApp +212612345678|06 12 34 56 78 ext 12|#0612345678
0612345678;ext=12|06 12 34 56 78 poste 12|06 12 34 56 78 x12|0612345678 / 0612345678
٠٦١٢٣٤٥٦٧٨|۰۶۱۲۳۴۵۶۷۸|+٢١٢ ٦١٢ ٣٤٥ ٦٧٨|＋２１２６１２３４５６７８|06‑12‑34‑56‑78|06–12–34–56–78
\u202a+212 612-345678\u202c|\u200e0612345678\ufeff|06\u00a012\u202f34\u200b5678
"""
TWO = """
06 12 34 56 78 / 05 24 00 00 00|0612345678/0524000000|0612345678, 0524000000|0612345678;0524000000
0612345678 0524000000|0612345678-0524000000|06 12 34 56 78 05 24 00 00 00|0612345678 ou 0524000000
+212 612345678 +212 524000000|0612345678 et +212 (0)5 24 00 00 00
"""


def spellings(text):
    return [one for line in text.strip().split("\n") for one in line.split("|")]


@pytest.mark.parametrize("typed", spellings(ONE))
def test_a_phone_number_is_recognised_in_any_common_format(typed):
    assert find_numbers(typed, "MA") == [MOBILE]


@pytest.mark.parametrize("typed", spellings(TWO))
def test_several_phone_numbers_in_one_field_are_recognised_separately(typed):
    assert find_numbers(typed, "MA") == [MOBILE, LANDLINE]


@pytest.mark.parametrize(
    "typed",
    ["", "-", "N/A", "1234", "06 12 34", "+212 6 12 34 56", "06123456789", "000000",
     "+999 12345678", "voir fiche", "2026-11-21"],
)  # fmt: skip
def test_a_text_that_cannot_be_dialled_is_not_a_phone_number(typed):
    assert find_numbers(typed, "MA") == []


@pytest.mark.parametrize(
    ("typed", "zone", "number"),
    [("06 12 34 56 78", "Europe/Paris", "+33612345678"), ("06 12 34 56 78", "nowhere", MOBILE),
     ("+33 (0)6 12 34 56 78", "Africa/Casablanca", "+33612345678"),
     ("+39 06 1234 5678", "Africa/Casablanca", "+390612345678")],
)  # fmt: skip
def test_a_number_without_a_country_code_gets_the_country_of_the_venue(typed, zone, number):
    assert find_numbers(typed, country_of(zone)) == [number]


@pytest.mark.parametrize(
    "query",
    ["0612345678", "06 12 34 56 78", "06/12/34/56/78", "06_12-34.5678", "612345678",
     "tel:+212612345678", "+212 6 12 34 56 78", "+212 (0)6 12 34 56 78", "+212 06 12 34 56 78",
     "00212612345678", "2120612345678", "(+212) 612345678", "#0612345678", "٠٦١٢٣٤٥٦٧٨",
     "06‑12‑34‑56‑78", "\u202a+212 612-345678\u202c"],
)  # fmt: skip
def test_a_booking_is_found_by_phone_number_in_any_format(query):
    assert contains("06 12 34 56 78", [MOBILE], query)
    assert ends_or_equals("06 12 34 56 78", [MOBILE], query)


@pytest.mark.parametrize(
    ("stored", "wanted", "same"),
    [
        ("0699424242", "+212 699 424 242", True),
        ("00212699424242", "+212 699-424-242", True),
        ("+212 (0)6-99-42-42-42", "0699424242", True),
        ("06 99 42 42 42 / 05 24 00 00 00", "0524000000", True),
        ("06 99 42 42 42;ext=3", "+212699424242", True),
        ("+33699424242", "+212699424242", False),
        ("+33699424242", "0699424242", False),
        ("+32 2 123 45 67", "02 123 45 67", True),
        ("+212699424242", "424242", False),
        ("0800 12", "80012", True),
        ("+212699424242", "", False),
        ("", "0699424242", False),
    ],
)
def test_a_guest_to_erase_is_found_by_phone_number_in_any_format(stored, wanted, same):
    assert is_same(stored, find_numbers(stored, "MA"), wanted, "MA") is same


def test_a_phone_number_is_displayed_with_the_digits_that_are_dialled():
    assert spell_number(find_numbers("+212 (0)5 24 00 00 00", "MA")[0]) == "+212 5 24 00 00 00"
