import pytest
from msgspec.structs import replace

from appliance.core.text import western_digits
from appliance.reservations.search import asks_phone, fits, is_name, search, search_by_name
from tests.unit.arrivals import a_guest

SALMA = a_guest(
    customer_name="Salma Idrissi", customer_phone="+212 600 123 457", access_code="SVC-7K2M",
    table_name="Terrasse 1", table_number="T1",
)  # fmt: skip
EMIL = a_guest(
    customer_name="Émile Ben-Salem", customer_phone="0600 99 88 77", access_code="SVC-3XYZ",
    table_name="Loge Nord", table_number="T12",
)  # fmt: skip
SALMA_AR = a_guest(
    customer_name="سَلْمى العلوي", customer_phone=None, access_code=None, table_number="T3"
)
ERASED = replace(
    EMIL, customer_name=None, customer_phone=None, customer_numbers=None, access_code=None
)
EVERYBODY = [SALMA, EMIL, SALMA_AR]


@pytest.mark.parametrize(
    ("query", "found"),
    [("", EVERYBODY), ("salma", [SALMA]), ("SAL", [SALMA, EMIL]), ("emile", [EMIL]),
     ("ÉMILE salem", [EMIL]), ("سلمى", [SALMA_AR]), ("svc-7k2m", [SALMA]), ("SVC3XYZ", [EMIL]),
     ("3xyz", [EMIL]), ("loge", [EMIL]), ("terrasse idrissi", [SALMA]), ("terrasse salem", []),
     ("457", []), ("3457", [SALMA]), ("8877", [EMIL]), ("123", []), ("nobody", []),
     ("٣٤٥٧", [SALMA]), ("34-57", [SALMA]), ("99-88 77", []), ("600 123", []),
     ("0600 123 457", [SALMA]), ("00212600123457", [SALMA]), ("+212 600 998 877", [EMIL]),
     ("salma 457", []), ("salma 3457", [SALMA]), ("t1", [SALMA]), ("T12", [EMIL]),
     ("T١٢", [EMIL]), ("سلمي", [SALMA_AR]), ("سـلمى", [SALMA_AR]), ("٧k٢m", [SALMA]),
     ("ben salem", [EMIL]), ("salma-idrissi", [SALMA])],
)  # fmt: skip
def test_a_guest_is_found_by_name_code_table_or_phone_number(query, found):
    assert search(EVERYBODY, query) == found


@pytest.mark.parametrize(
    ("phone", "national"),
    [("+212 600 123 457", "600123457"), ("00212600123457", "600123457"), ("0600123457", None),
     ("0712345678", None), ("+44 7911 123456", "7911123456"), ("+1 718 555 1234", "7185551234"),
     ("+39 06 1234 5678", "612345678"), ("+216 98 123 456", "98123456"), ("123456", None)],
)  # fmt: skip
def test_at_the_door_a_phone_number_matches_only_whole_or_by_its_last_four_digits(phone, national):
    guest = a_guest(customer_name=None, table_name="Loge", table_number="L", customer_phone=phone)
    digits = "".join(sign for sign in phone if sign.isdecimal())
    parts = {digits[a:b] for a in range(len(digits)) for b in range(a + 1, len(digits) + 1)}

    found = {part for part in parts if search([guest], part)}

    assert {part for part in found if len(part) < 6} == {digits[-4:]}
    whole = {part.lstrip("0") for part in found if len(part) >= 6}
    assert whole == {digits.lstrip("0"), national or digits.lstrip("0")}
    assert all(asks_phone(part) for part in found)


@pytest.mark.parametrize("query", ["", "salma", "T12", "7k2m", "34", "salma 57"])
def test_a_search_that_is_not_a_phone_number_is_not_counted_as_one(query):
    assert not asks_phone(query)


def test_an_erased_guest_is_found_only_by_table():
    assert search([ERASED], "emile") == search([ERASED], "8877") == search([ERASED], "3xyz") == []
    assert search([ERASED], "loge") == [ERASED]


@pytest.mark.parametrize(
    ("query", "found"),
    [("salma", [SALMA]), ("idri sal", [SALMA]), ("alma", []), ("emile", [EMIL]), ("", []),
     ("terrasse", []), ("سلمى", [SALMA_AR]), ("salem emile", [EMIL]), ("Salma-Idrissi", [SALMA])],
)  # fmt: skip
def test_a_typed_name_matches_the_start_of_any_word_of_the_name(query, found):
    assert search_by_name(EVERYBODY, query) == found


@pytest.mark.parametrize(
    ("query", "is_found"),
    [("600 123", True), ("٦٠٠ ١٢٣", True), ("0600 123 457", True), ("12", False), ("601", False)],
)
def test_the_portal_finds_a_phone_number_by_any_part_of_it(query, is_found):
    assert fits(SALMA, query) == is_found


@pytest.mark.parametrize(
    ("typed", "may_be"),
    [("Émile Ben-Salem", True), ("سَلْمى", True), ("b", False), ("4006381333931", False),
     ("T12", False), ("x" * 81, False), ("", False)],
)  # fmt: skip
def test_only_words_of_letters_are_searched_as_names(typed, may_be):
    assert is_name(typed) == may_be


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
        ("Mr John Smith", "John"),
        ("Mme Abd El Kader Tazi", "Abd El Kader"),
        ("Dr. Smith", "Smith"),
        ("السيد عبد الرحمن العلوي", "عبد الرحمن"),
        ("M.", "M."),
        ("", None),
    ],
)
def test_a_guest_is_addressed_by_the_complete_first_name(name, given):
    assert a_guest(customer_name=name).customer_given_name == given


def test_eastern_digits_are_converted_and_letters_are_unchanged():
    assert western_digits("٧K۲M é") == "7K2M é"
