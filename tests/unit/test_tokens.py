"""Ids, codes and link tokens: their formats, and that forged ones are rejected."""

import base64
import re
from itertools import cycle, islice
from uuid import UUID

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from appliance.core.tokens import ACCESS_CODE_ALPHABET, Keyring, Tokens, hash_token

MASTER = bytes(range(32))
LIVE, TEST = Keyring(MASTER, "live"), Keyring(MASTER, "test")
URL_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
IDS = st.uuids().map(str)
MASTERS = st.binary(min_size=32, max_size=32)


def is_read_by_nobody(token: str, *keyrings: Keyring) -> bool:
    return all(
        keyring.read_access_token(token) is None and keyring.read_claim_token(token) is None
        for keyring in keyrings
    )


@given(IDS, st.integers(0, 43), st.sampled_from(URL_SAFE))
def test_a_token_with_one_changed_character_is_rejected(id_: str, at: int, letter: str):
    for token in (LIVE.access_token(id_, 0), LIVE.claim_token(id_, 0)):
        mutated = token[:at] + letter + token[at + 1 :]
        assert mutated == token or is_read_by_nobody(mutated, LIVE, TEST)


@given(IDS, IDS)
def test_a_token_is_valid_for_only_one_reservation(one: str, other: str):
    mine = base64.urlsafe_b64decode(LIVE.access_token(one, 0))
    forged = base64.urlsafe_b64encode(UUID(other).bytes + mine[16:]).decode()

    assert one == other or is_read_by_nobody(forged, LIVE, TEST)


@given(IDS, st.integers(0, 255))
def test_the_next_link_of_a_reservation_cannot_be_derived_from_the_last(id_: str, generation: int):
    token = LIVE.access_token(id_, generation)
    raw = bytearray(base64.urlsafe_b64decode(token))
    raw[16] = (generation + 1) % 256

    assert LIVE.read_access_token(token) == (id_, generation)
    assert is_read_by_nobody(base64.urlsafe_b64encode(raw).decode(), LIVE)


@given(IDS)
def test_a_token_is_rejected_for_another_purpose(id_: str):
    assert LIVE.read_claim_token(LIVE.access_token(id_, 0)) is None
    assert LIVE.read_access_token(LIVE.claim_token(id_, 0)) is None


@given(IDS)
def test_a_token_is_rejected_in_the_other_environment(id_: str):
    assert is_read_by_nobody(LIVE.access_token(id_, 0), TEST)
    assert is_read_by_nobody(TEST.access_token(id_, 0), LIVE)
    assert is_read_by_nobody(LIVE.claim_token(id_, 0), TEST)
    assert is_read_by_nobody(TEST.claim_token(id_, 0), LIVE)


@given(IDS, MASTERS.filter(lambda master: master != MASTER))
@example("00000000-0000-4000-8000-000000000000", bytes([1, *range(1, 32)]))  # one bit away
def test_a_token_is_rejected_by_a_box_with_another_master_key(id_: str, master: bytes):
    other = Keyring(master, "live")

    assert is_read_by_nobody(LIVE.access_token(id_, 0), other)
    assert is_read_by_nobody(LIVE.claim_token(id_, 0), other)


@given(st.text() | st.text(URL_SAFE, min_size=42, max_size=46))
@example("")
@example("é" * 44)
@example("A" * 44)
@example("\x00" * 44)
def test_no_arbitrary_text_is_a_valid_token_or_raises(text: str):
    assert is_read_by_nobody(text, LIVE, TEST)


@given(st.binary(max_size=200), st.binary(min_size=12, max_size=12))
def test_an_encrypted_secret_can_be_decrypted_and_is_not_visible(secret: bytes, nonce: bytes):
    wrapped = LIVE.wrap(secret, nonce)

    assert LIVE.unwrap(wrapped) == secret
    assert len(secret) < 8 or secret not in wrapped[12:]


@given(st.binary(max_size=50), st.integers(0))
def test_a_modified_encrypted_secret_is_refused(secret: bytes, bit: int):
    wrapped = bytearray(LIVE.wrap(secret, b"n" * 12))
    bit %= len(wrapped) * 8
    wrapped[bit // 8] ^= 1 << bit % 8

    with pytest.raises(ValueError, match="different master key, or damaged"):
        LIVE.unwrap(bytes(wrapped))


@pytest.mark.parametrize("other", [TEST, Keyring(bytes(32), "live")])
def test_a_secret_can_be_decrypted_only_in_its_own_box_and_environment(other: Keyring):
    with pytest.raises(ValueError, match="different master key, or damaged"):
        other.unwrap(LIVE.wrap(b"whsec_x", b"n" * 12))


@given(st.binary(min_size=10, max_size=10), st.integers(0, 2**48 - 1))
def test_an_id_is_a_uuid_of_version_7_that_starts_with_its_time(random: bytes, now: int):
    found = Tokens(lambda _n: random).new_id(now)

    assert str(UUID(found)) == found
    assert (UUID(found).version, UUID(found).variant) == (7, "specified in RFC 4122")
    assert int(found.replace("-", "")[:12], 16) == now


@given(st.binary(min_size=1, max_size=64))
def test_an_access_code_has_four_easily_distinguished_characters(seed: bytes):
    assume(any(byte < 248 for byte in seed))  # other bytes are skipped
    drawn = cycle(seed)
    tokens = Tokens(lambda n: bytes(islice(drawn, n)))

    code = tokens.new_access_code()

    assert re.fullmatch(f"SVC-[{ACCESS_CODE_ALPHABET}]{{4}}", code)
    assert not set(code[4:]) & set("01IO")


def test_every_character_of_an_access_code_is_equally_likely():
    letters = [Tokens(lambda n, b=b: bytes([b]) * n).new_access_code()[4] for b in range(248)]

    assert {letters.count(letter) for letter in ACCESS_CODE_ALPHABET} == {8}


@pytest.mark.parametrize(
    ("make", "form"),
    [(lambda tokens: tokens.new_api_key("live"), r"svc_live_[0-9a-f]{48}"),
     (lambda tokens: tokens.new_api_key("test"), r"svc_test_[0-9a-f]{48}"),
     (lambda tokens: tokens.new_terminal_token(), r"term_[0-9a-f]{64}"),
     (lambda tokens: tokens.new_webhook_secret(), r"whsec_[A-Za-z0-9_-]{43}"),
     (lambda tokens: tokens.new_link_secret(), r"[A-Za-z0-9_-]{43}"),
     (lambda tokens: tokens.new_pairing_code(), r"[0-9]{8}")],
)  # fmt: skip
def test_keys_and_secrets_have_their_documented_forms_and_are_unique(make, form: str):
    made = [make(Tokens()) for _ in range(20)]

    assert all(re.fullmatch(form, one) for one in made)
    assert len(set(made)) == 20


def test_only_the_sha_256_of_a_token_is_stored():
    assert hash_token("abc").hex() == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
