from dataclasses import replace

import pytest

from appliance.model.guest_search import search, search_by_name
from tests.appliance.arrivals import a_guest

SALMA = a_guest(
    customer_name="Salma Idrissi", customer_phone="+212 600 123 457", access_code="SVC-7K2M",
    table_name="Terrasse 1",
)  # fmt: skip
EMIL = a_guest(
    customer_name="Émile Ben-Salem", customer_phone="0600 99 88 77", access_code="SVC-3XYZ",
    table_name="Loge Nord",
)  # fmt: skip
SALMA_AR = a_guest(customer_name="سَلْمى العلوي", customer_phone=None, access_code=None)
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
