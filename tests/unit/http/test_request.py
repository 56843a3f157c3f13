"""The box's JSON parser compared with the standard library's, and ambiguous bodies."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.core.errors import InvalidJson
from appliance.http.request import parse_object

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers() | FLOATS | TEXTS
OBJECTS = st.dictionaries(
    TEXTS,
    st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
                 max_leaves=5),
)  # fmt: skip


def is_refused(raw: bytes) -> bool:
    try:
        parse_object(raw)
    except InvalidJson:
        return True
    return False


@settings(max_examples=30)
@given(OBJECTS, st.booleans(), st.sampled_from([None, 0, 2]))
def test_a_valid_json_object_is_parsed_as_by_the_standard_library(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    assert parse_object(text.encode()) == json.loads(text) == value


@settings(max_examples=30)
@given(OBJECTS.filter(bool), st.data())
def test_a_duplicate_member_is_refused_at_any_depth(value, data):
    name = json.dumps(data.draw(st.sampled_from(list(value))))
    inner = f"{json.dumps(value)[:-1]}, {name}: 1}}"

    assert is_refused(inner.encode())
    assert is_refused(f'{{"list": [{inner}]}}'.encode())


@pytest.mark.parametrize(
    "value",
    [
        '{"\\ud800": 1}', '{"\\u0000": 1}',
        "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "01", "1.", ".5", "0x10",
        "'text'", "True", "undefined", '"\\ud800"', '"\\udc00"', '"\\udc00\\ud800"', '"\\u0000"',
        '"\n"', "/* */ 1", "[1,]",
    ],
)  # fmt: skip
def test_json_that_parsers_interpret_differently_is_refused(value: str):
    assert is_refused(f'{{"x": {value}}}'.encode())


@pytest.mark.parametrize("inmost", [b"1", rb'"\u0000"'])
def test_json_nested_too_deeply_is_refused(inmost: bytes):
    levels = 100_000
    assert is_refused(b'{"x": %s%s%s}' % (b"[" * levels, inmost, b"]" * levels))
