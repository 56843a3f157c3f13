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


@pytest.mark.proves("decision: A rolled secret?")
def test_one_secret_gives_one_digest_and_a_roll_gives_two():
    assert sign([SECRET], 1, b"").count("v1=") == 1
    assert sign([SECRET, "whsec_old"], 1, b"").count("v1=") == 2
