"""No reader of an exported CSV takes a guest's text for a formula."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.text import phone_text, write_cell, write_cells
from tests.spreadsheets import formulas_in, rows_of

SIGNS = ["=", "+", "-", "@", "'", "＝", "＋", "－", "＠", "﹦", "﹣", "⁺"]
BEFORE = ["", " ", "\t", "\r", "\n", "\x00", "\x1b", "\x1f", "\x85", "\xa0", "\u00ad", "\u200b",
          "\u200f", "\u202e", "\u2028", "\u2060", "\u3000", "\ufeff", '"', '""', "'"]  # fmt: skip
SEPARATORS = ["", "x;", "x,", "x\t", "x\r\n", "x\n", "x;;", "x,;", 'x";', 'x;",']


def line_of(*texts):
    return write_cells(map(write_cell, texts))


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("before", BEFORE)
def test_no_part_of_a_cell_begins_a_formula(before, sign):
    for separator in SEPARATORS:
        text = line_of("a", f"{separator}{before}{sign}1+cmd|' /C calc'!A0;y", "b").decode()

        assert formulas_in(text) == []
        assert text.count("\n") == text.count("\r") == text.count("\t") == 0
        assert len(rows_of(text)[0]) == 3


@given(st.lists(st.text("=+-@'\"＝;,\t\r\n\x1b\xa0\u200bx1 "), min_size=1, max_size=4))
def test_whatever_stands_in_a_line_is_no_formula_and_as_many_cells(texts):
    written = line_of(*texts)

    assert formulas_in(written.decode()) == []
    assert len(rows_of(written.decode())[0]) == len(texts)


@pytest.mark.parametrize("control", [chr(n) for n in (*range(32), *range(127, 160))])
def test_no_control_character_is_written(control):
    assert control not in line_of(f"a{control}b", f"{control}=1").decode()


@pytest.mark.parametrize("number", ["+212 600 123 457", "0600123457", "00212600123457"])
def test_a_phone_number_is_a_text_that_keeps_every_digit(number):
    text = phone_text(number)

    assert rows_of(line_of(text).decode()) == [[text]]
    assert text.endswith(number)
    assert not text[0].isdigit()


def test_what_is_not_there_is_an_empty_cell():
    assert write_cell(None) == write_cell(phone_text(None)) == write_cell(phone_text("")) == ""
