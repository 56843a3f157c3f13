from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from appliance.core.tokens import Tokens
from appliance.staff.two_factor import (
    app_address,
    matching_steps,
    normalise_recovery_code,
    totp_code,
)

SECRET = b"12345678901234567890"
# RFC 6238, appendix B, SHA-1: seconds, and a code of eight digits, of which ours are the last six.
VECTORS = (
    (59, "94287082"),
    (1111111109, "07081804"),
    (1111111111, "14050471"),
    (1234567890, "89005924"),
    (2000000000, "69279037"),
    (20000000000, "65353130"),
)
NOW = 1_111_111_111_000
STEP = NOW // 30_000


@pytest.mark.parametrize(("seconds", "code"), VECTORS)
def test_the_codes_match_the_rfc_test_vectors(seconds, code):
    assert totp_code(SECRET, seconds // 30) == code[2:]


@pytest.mark.parametrize(("beside", "fits"), [(-2, False), (-1, True), (1, True), (2, False)])
def test_codes_are_accepted_at_most_one_step_before_or_after_the_current_time(beside, fits):
    assert matching_steps(SECRET, totp_code(SECRET, STEP + beside), NOW) == [STEP + beside] * fits


def test_a_box_with_a_lost_clock_still_verifies_codes():
    assert matching_steps(SECRET, totp_code(SECRET, 0), 0) == [0]


RIGHT = ["050471", "050 471", " 0504 71 ", "٠٥٠٤٧١", "۰۵۰۴۷۱"]
WRONG = ["", "05047", "0504710", "14050471", "o50471", "²50471", "-50471"]


@pytest.mark.parametrize("typed", [*RIGHT, *WRONG])
def test_spaces_and_other_digit_forms_in_a_code_are_accepted_and_other_texts_are_not(typed):
    assert matching_steps(SECRET, typed, NOW) == [STEP] * (typed in RIGHT)


def test_the_provisioning_uri_contains_the_secret_the_venue_and_the_person():
    address = urlsplit(app_address(SECRET, "Riad & Fils: l’été", "Yasmine: B"))

    assert (address.scheme, address.netloc) == ("otpauth", "totp")
    assert "+" not in address.query
    assert address.path.count(":") == 1  # apps split the label at this character
    assert unquote(address.path) == "/Riad & Fils l’été:Yasmine B"
    assert parse_qs(address.query) == {
        "secret": ["GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"],
        "issuer": ["Riad & Fils l’été"],
        "algorithm": ["SHA1"],
        "digits": ["6"],
        "period": ["30"],
    }


def test_a_recovery_code_is_accepted_in_any_letter_case_and_spacing():
    code = Tokens().new_recovery_code()

    assert len(normalise_recovery_code(code)) == 16
    assert normalise_recovery_code(code.lower().replace("-", " ")) == normalise_recovery_code(code)
