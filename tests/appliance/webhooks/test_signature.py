"""The signature, against vectors made by openssl and the verifier that partners know."""

import json
from pathlib import Path

import pytest
import stripe

from appliance.webhooks.signature import sign

VECTORS = Path(__file__).parents[2] / "vectors" / "webhook_signature.json"
CASES = json.loads(VECTORS.read_text("utf-8"))["cases"]
SECRET = CASES[0]["secrets"][0]


@pytest.mark.proves("decision: What is the signing key?")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_signature_is_that_of_the_vector(case):
    assert sign(case["secrets"], case["t"], case["body"].encode()) == case["header"]


@pytest.mark.proves("decision: What is the signing key?")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_library_of_stripe_accepts_it_with_each_secret(case):
    for secret in case["secrets"]:
        header = sign(case["secrets"], case["t"], case["body"].encode())

        assert stripe.WebhookSignature.verify_header(case["body"], header, secret)


def test_the_library_of_stripe_refuses_every_body_that_differs_in_one_bit():
    body = b'{"id":"1","type":"webhook.test"}'
    header = sign([SECRET], 1795287600, body)

    accepted = []
    for bit in range(8 * len(body)):
        changed = bytearray(body)
        changed[bit // 8] ^= 1 << bit % 8
        if _is_accepted(changed.decode("latin-1"), header, SECRET):
            accepted.append(bit)

    assert accepted == []


def test_another_time_or_another_secret_is_refused():
    body = '{"id":"1"}'
    header = sign([SECRET], 1795287600, body.encode())

    assert not _is_accepted(body, header.replace("t=1795287600", "t=1795287601"), SECRET)
    assert not _is_accepted(body, header, SECRET[:-1] + "x")
    assert not _is_accepted(body, header, SECRET.removeprefix("whsec_"))


@pytest.mark.proves("decision: A rolled secret?")
def test_one_secret_gives_one_digest_and_a_roll_gives_two():
    assert sign([SECRET], 1, b"").count("v1=") == 1
    assert sign([SECRET, "whsec_old"], 1, b"").count("v1=") == 2


def _is_accepted(body, header, secret):
    try:
        return stripe.WebhookSignature.verify_header(body, header, secret)
    except stripe.SignatureVerificationError:
        return False
