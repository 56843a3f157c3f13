"""Names that break careless JSON, on their way from a partner to its receiver (row 29)."""

import hashlib
import hmac
import json

import pytest

from tests.builders import TONIGHT, table_id
from tests.conftest import with_settings

HAZARDS = {
    "quotes": '"};alert(1)//',
    "backslash": "\\\\u0022",
    "line separators": "a\u2028b\u2029c",
    "right to left": "\u202egnol\u2066",
    "arabic": "سلمى الإدريسي",
    "outside the basic plane": "🥂👩\u200d🍳\ufeff",
    "control": "a\x1b[31m\x7f",
    "markup": "</script><!--",
}


@pytest.fixture
def settings():
    return with_settings(
        webhooks={"allow_networks": ("127.0.0.0/8",), "allow_http": True},
        api={"rate_limit_per_minute": 100_000},
    )


def a_body(name, key="k1"):
    return {
        "tableId": table_id("T1"),
        "date": TONIGHT,
        "slot": "19:30",
        "guests": 2,
        "customer": {"name": f"{name}x Idrissi", "phone": "+212600000001"},
        "externalRef": name,
        "idempotencyKey": key,
        "notifyCustomer": False,
    }


@pytest.mark.parametrize("text", HAZARDS.values(), ids=HAZARDS.keys())
async def test_a_hazardous_name_arrives_as_it_was_given_under_a_signature_that_holds(
    running, receiver, text
):
    body = {"url": receiver.url, "events": ["reservation.created"]}
    _, endpoint, _ = await running.call("POST", "/test/v1/webhooks", json=body)

    status, _, _ = await running.call("POST", "/test/v1/reservations", json=a_body(text))

    assert status == 201
    [request] = await receiver.got(1)
    signature = request.headers["x-service-signature"]
    assert holds(endpoint["secret"], signature, request.raw)
    assert not holds(endpoint["secret"], signature, request.raw + b" ")
    assert request.raw.isascii()
    assert request.reservation["externalRef"] == text
    assert request.reservation["customerFirstName"] == f"{text}x Idrissi".split()[0]


@pytest.mark.parametrize("text", ["\\ud83e", "\\udd42\\ud83e", "a\\u0000b"])
async def test_half_a_character_and_null_never_get_in(running, text):
    raw = json.dumps(a_body("HERE")).replace("HERE", text)
    headers = {"Content-Type": "application/json"}

    status, answer, _ = await running.call(
        "POST", "/test/v1/reservations", data=raw, headers=headers
    )

    assert (status, answer["code"]) == (400, "INVALID_JSON")


def holds(secret, header, raw):
    """By the contract's words alone (section 6.1): `t=<seconds>,v1=<hex HMAC of "<t>.<raw>">`."""
    stamp, _, given = header.partition(",v1=")
    signed = stamp.removeprefix("t=").encode() + b"." + raw
    return hmac.compare_digest(hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest(), given)
