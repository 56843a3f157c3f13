import json
from datetime import date, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from appliance.door.guest_pass import (
    GuestPass,
    ReadPass,
    decode_passes,
    encode_pass,
    resembles_pass,
)
from appliance.door.scan import classify

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "guest_pass.json").read_text("utf-8"))
PRIVATE_KEY = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(VECTORS["privateKey"]))
PUBLIC_KEY = bytes.fromhex(VECTORS["publicKey"])
BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

slots = st.none() | st.builds("{:02d}:{:02d}".format, st.integers(0, 23), st.integers(0, 59))
passes = st.builds(
    GuestPass,
    version=st.sampled_from([0x01, 0x81]),
    kid=st.integers(0, 255),
    venue_tag=st.binary(min_size=4, max_size=4),
    pass_id=st.binary(min_size=8, max_size=8),
    evening=st.dates(date(2020, 1, 1), date(2020, 1, 1) + timedelta(days=65535)),
    slot=slots,
    guests=st.integers(1, 255),
    generation=st.integers(0, 255),
)


def genuine(text: str) -> ReadPass | None:
    """Return a reading of the text that is signed with our key, if there is one."""
    return next((read for read in decode_passes(text) if read.is_signed_by(PUBLIC_KEY)), None)


@given(passes)
def test_a_pass_survives_encoding_to_139_alphanumeric_characters(guest_pass):
    text = encode_pass(guest_pass, PRIVATE_KEY)

    read = genuine(text)

    assert read is not None
    assert read.guest_pass == guest_pass
    assert read.signed == guest_pass.to_bytes()
    assert len(text) == 139
    assert text.startswith("SVC1")
    assert set(text[4:]) <= set(BASE32)


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["note"])
def test_passes_are_read_and_written_as_in_the_test_vectors(vector):
    read = genuine(vector.get("read", vector["text"]))

    assert (read is not None) == vector["valid"]
    if read is not None:
        assert fields(read.guest_pass) == vector["pass"]
        assert encode_pass(read.guest_pass, PRIVATE_KEY) == vector["text"]


@pytest.mark.parametrize("reading", VECTORS["readings"], ids=lambda reading: reading["note"])
def test_a_pass_is_extracted_from_a_longer_scanned_text(reading):
    kind, value = classify(reading["read"])

    assert kind == reading["kind"]
    assert value == reading.get("value", reading["read"])


@given(st.text(max_size=300))
def test_no_arbitrary_text_is_a_valid_pass_or_raises(text):
    assert genuine(text) is None
    assert genuine(f"SVC1{text}") is None
    resembles_pass(text)


RUINS = ["SVC1ABC", "svc1 whatever", "SVC&ABC", "svc1", "سرؤ1ضض", "\u064d{}1", "]Q1SVC1ABC"]
OTHERS = ["", "SVC", "SVC-7K2M", "https://example.com", "svc2abc", "7K2M"]


@pytest.mark.parametrize("text", [*RUINS, *OTHERS])
def test_a_damaged_pass_is_recognised_as_ours_and_other_texts_are_not(text):
    assert resembles_pass(text) is (text in RUINS)


def fields(guest_pass: GuestPass) -> dict:
    return {
        "version": guest_pass.version,
        "kid": guest_pass.kid,
        "venueTag": guest_pass.venue_tag.hex(),
        "passId": guest_pass.pass_id.hex(),
        "evening": guest_pass.evening.isoformat(),
        "slot": guest_pass.slot,
        "guests": guest_pass.guests,
        "generation": guest_pass.generation,
    }
