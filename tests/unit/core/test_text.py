"""Names are compared in a folded form, and CSV cells never become formulas."""

import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.text import fold, write_cell, write_cells
from appliance.reservations.search import matches_text
from tests.spreadsheets import formulas_in, rows_of

SIGNS = ["=", "+", "-", "@", "'", "＝", "＋", "－", "＠", "﹦", "﹣", "⁺"]
BEFORE = ["", " ", "\t", "\r", "\n", "\x00", "\x1b", "\x1f", "\x85", "\xa0", "\u00ad", "\u200b",
          "\u200f", "\u202e", "\u2028", "\u2060", "\u3000", "\ufeff", '"', '""', "'"]  # fmt: skip
SEPARATORS = ["", "x;", "x,", "x\t", "x\r\n", "x\n", "x;;", "x,;", 'x";', 'x;",']


def line_of(*texts):
    return write_cells(map(write_cell, texts))


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("before", BEFORE)
def test_no_part_of_a_csv_cell_starts_a_spreadsheet_formula(before, sign):
    for separator in SEPARATORS:
        text = line_of("a", f"{separator}{before}{sign}1+cmd|' /C calc'!A0;y", "b").decode()

        assert formulas_in(text) == []
        assert text.count("\n") == text.count("\r") == text.count("\t") == 0
        assert len(rows_of(text)[0]) == 3


@given(st.lists(st.text("=+-@'\"＝;,\t\r\n\x1b\xa0\u200bx1 "), min_size=1, max_size=4))
def test_a_csv_line_keeps_its_number_of_cells_and_contains_no_formula(texts):
    written = line_of(*texts)

    assert formulas_in(written.decode()) == []
    assert len(rows_of(written.decode())[0]) == len(texts)


VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "folded.json").read_text("utf-8"))


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["note"])
def test_text_folds_as_in_the_test_vectors_and_folding_twice_changes_nothing(vector):
    assert fold(vector["text"]) == vector["folded"]
    assert fold(vector["folded"]) == vector["folded"]


@pytest.mark.parametrize("search", VECTORS["searches"], ids=lambda s: f"{s['query']}: {s['text']}")
def test_searches_match_as_in_the_test_vectors(search):
    assert matches_text(search["query"], search["text"]) is search["found"]


def test_every_latin_letter_folds_to_letters_on_a_keyboard():
    letters = [chr(n) for n in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00), *range(0x2C60, 0x2C80))
               if unicodedata.category(chr(n)) in {"Lu", "Ll"}]  # fmt: skip
    strange = {letter for letter in letters if not re.fullmatch("[a-z']*", fold(letter))}

    assert strange == set()


def test_every_dash_folds_to_a_hyphen():
    dashes = [chr(n) for n in range(0x10000) if unicodedata.category(chr(n)) == "Pd"]

    assert {fold(dash) for dash in dashes} == {"-"}
