import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.tokens import ACCESS_CODE_ALPHABET
from appliance.door.guest_pass import lookalikes, parse_access_code

codes = st.text(ACCESS_CODE_ALPHABET, min_size=4, max_size=4).map("SVC-{}".format)


@pytest.mark.parametrize(
    "text", ["", "SVC", "SVC-", "7K2", "SVC-7K2MX", "7K2MX", "ABC-7K2M", "7K2é", "SVC1" * 30]
)
def test_other_texts_are_no_codes(text):
    assert parse_access_code(text) is None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("SVC-O234", "SVC-Q234"), ("SVC-0234", "SVC-D234"), ("SVC-I234", "SVC-J234"),
     ("SVC-Z345", "SVC-2345"), ("SVC-B345", "SVC-8345"), ("SVC-5345", "SVC-S345")],
)  # fmt: skip
def test_signs_that_resemble_each_other_are_forgiven(typed, meant):
    assert meant in lookalikes(typed)


@given(codes)
def test_lookalikes_are_codes_that_could_be_given_and_never_the_code_itself(code):
    found = lookalikes(code)

    assert parse_access_code(code) == code
    assert code not in found
    assert len(found) < 2**4
    assert all(set(other[4:]) <= set(ACCESS_CODE_ALPHABET) for other in found)
