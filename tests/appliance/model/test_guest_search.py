from dataclasses import replace

import pytest

from appliance.model.guest_search import fits, is_name, search, search_by_name
from tests.appliance.arrivals import a_guest

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
ERASED = replace(EMIL, customer_name=None, customer_phone=None, access_code=None)
EVERYBODY = [SALMA, EMIL, SALMA_AR]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", EVERYBODY),
        ("salma", [SALMA]),
        ("SAL", [SALMA, EMIL]),
        ("emile", [EMIL]),
        ("ÉMILE salem", [EMIL]),
        ("سلمى", [SALMA_AR]),
        ("svc-7k2m", [SALMA]),
        ("SVC3XYZ", [EMIL]),
        ("3xyz", [EMIL]),
        ("loge", [EMIL]),
        ("terrasse idrissi", [SALMA]),
        ("terrasse salem", []),
        ("457", [SALMA]),
        ("123457", [SALMA]),
        ("8877", [EMIL]),
        ("123", []),
        ("nobody", []),
        ("٤٥٧", [SALMA]),
        ("123 457", [SALMA]),
        ("99-88 77", [EMIL]),
        ("600 123", []),
        ("0600 123 457", [SALMA]),
        ("00212600123457", [SALMA]),
        ("+212 600 998 877", [EMIL]),
        ("salma 457", [SALMA]),
        ("t1", [SALMA]),
        ("T12", [EMIL]),
        ("T١٢", [EMIL]),
        ("سلمي", [SALMA_AR]),
        ("سـلمى", [SALMA_AR]),
        ("٧k٢m", [SALMA]),
    ],
)
def test_a_guest_is_found_by_name_code_table_or_the_end_of_the_phone(query, found):
    assert search(EVERYBODY, query) == found


@pytest.mark.parametrize("query", ["7", "57"])
def test_one_or_two_digits_are_too_few_to_search_phones(query):
    assert EMIL not in search(EVERYBODY, query)
    assert SALMA_AR not in search(EVERYBODY, query)


def test_an_erased_guest_is_found_by_the_table_alone():
    assert search([ERASED], "emile") == search([ERASED], "8877") == search([ERASED], "3xyz") == []
    assert search([ERASED], "loge") == [ERASED]


@pytest.mark.parametrize(
    ("query", "found"),
    [("salma", [SALMA]), ("idri sal", [SALMA]), ("alma", []), ("emile", [EMIL]), ("", []),
     ("terrasse", []), ("سلمى", [SALMA_AR])],
)  # fmt: skip
def test_a_typed_name_fits_the_beginning_of_a_word_of_the_name(query, found):
    assert search_by_name(EVERYBODY, query) == found


@pytest.mark.parametrize("typed", ["فاطمه", "فـاطمة", "فَاطِمَة"])
def test_one_name_is_found_in_whichever_way_it_is_written(typed):
    fatima = a_guest(customer_name="فاطمة الزهراء")

    assert search([fatima], typed) == search_by_name([fatima], typed) == [fatima]
    assert fits(fatima, typed)


@pytest.mark.parametrize(
    ("query", "is_found"),
    [("600 123", True), ("٦٠٠ ١٢٣", True), ("0600 123 457", True), ("12", False), ("601", False)],
)
def test_the_portal_finds_a_number_by_any_part_of_it(query, is_found):
    assert fits(SALMA, query) == is_found


@pytest.mark.parametrize(
    ("typed", "may_be"),
    [("Émile Ben-Salem", True), ("سَلْمى", True), ("b", False), ("4006381333931", False),
     ("T12", False), ("x" * 81, False), ("", False)],
)  # fmt: skip
def test_words_of_letters_may_be_a_name(typed, may_be):
    assert is_name(typed) == may_be
