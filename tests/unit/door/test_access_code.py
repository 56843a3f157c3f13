import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.tokens import ACCESS_CODE_ALPHABET
from appliance.door.guest_pass import lookalikes, parse_access_code

codes = st.text(ACCESS_CODE_ALPHABET, min_size=4, max_size=4).map("SVC-{}".format)


@pytest.mark.parametrize(
    "text", ["", "SVC", "SVC-", "7K2", "SVC-7K2MX", "7K2MX", "ABC-7K2M", "7K2é", "SVC1" * 30]
)
def test_texts_that_do_not_look_like_a_code_are_rejected(text):
    assert parse_access_code(text) is None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("SVC-O234", "SVC-Q234"), ("SVC-0234", "SVC-D234"), ("SVC-I234", "SVC-J234"),
     ("SVC-Z345", "SVC-2345"), ("SVC-B345", "SVC-8345"), ("SVC-5345", "SVC-S345")],
)  # fmt: skip
def test_easily_confused_characters_in_an_access_code_are_corrected(typed, meant):
    assert meant in lookalikes(typed)


@given(codes)
def test_lookalikes_are_valid_codes_other_than_the_code_itself(code):
    found = lookalikes(code)

    assert parse_access_code(code) == code
    assert code not in found
    assert len(found) < 2**4
    assert all(set(other[4:]) <= set(ACCESS_CODE_ALPHABET) for other in found)
