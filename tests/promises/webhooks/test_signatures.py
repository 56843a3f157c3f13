"""Real deliveries verified by Stripe's Node library, and unusual names."""

import base64
import hashlib
import hmac
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from appliance.core.text import clean_line
from appliance.webhooks.endpoints import roll_secret
from appliance.webhooks.payload import sign
from tests.builders import a_body
from tests.conftest import with_settings

FRONTEND = Path(__file__).parents[3] / "web" / "frontend"
FOREVER = 0  # no maximum age of a signature
HAZARDS = {
    "quotes": '"};alert(1)//',
    "backslash": "\\\\u0022",
    "line separators": "a\u2028b\u2029c",
    "right to left": "\u202egnol\u2066",
    "outside the basic plane": "🥂👩\u200d🍳\ufeff",
    "control": "a\x1b[31m\x7f",
    "markup": "</script><!--",
}


@pytest.fixture
def judge(tmp_path):
    """`judge([(payload, header, secret, max age), …])`: whether Stripe's library accepts each."""
    folder = tmp_path / "partner"
    folder.mkdir()
    (folder / "node_modules").symlink_to(FRONTEND / "node_modules")  # for Node
    script = shutil.copy(Path(__file__).with_name("verify.mjs"), folder)

    def run(cases):
        told = [
            {"payload": base64.b64encode(payload).decode(), "header": header, "secret": secret,
             "tolerance": age}
            for payload, header, secret, age in cases
        ]  # fmt: skip
        found = subprocess.run(
            [Path(sys.executable).with_name("node"), "--preserve-symlinks", script],
            input=json.dumps(told), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert found.returncode == 0, found.stderr
        return json.loads(found.stdout)

    return run


def flipped(raw):
    """Yield every text that differs from `raw` in one bit."""
    for bit in range(8 * len(raw)):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


@pytest.mark.process
async def test_stripes_library_rejects_deliveries_with_a_changed_bit_secret_or_age(
    world, receiver, judge
):
    endpoint, old = await world.register(receiver.url)
    await world.start()
    await world.book(customer_name='Salmâ \u2028 \u202e🎉 \\u0000 "quoted"')
    await receiver.got(1)
    new = await world.database.write(roll_secret, world.environment.keyring, endpoint.id)
    await world.book()
    first, second = await receiver.got(2)

    raw, header = first.raw, first.headers["x-service-signature"]
    rolled = second.headers["x-service-signature"]
    now = int(time.time())
    good = [
        (raw, header, old, FOREVER), (second.raw, rolled, new, FOREVER),
        (second.raw, rolled, old, FOREVER), (b"{}", sign([old], now, b"{}"), old, 300),
    ]  # fmt: skip
    bad = [
        (raw, header, old[:-1] + "~", FOREVER), (raw, header, new, FOREVER),
        (b"{}", sign([old], now - 400, b"{}"), old, 300),
        *((changed, header, old, FOREVER) for changed in flipped(raw)),
        *((raw, changed.decode(), old, FOREVER) for changed in flipped(header.encode())
          if changed.isascii() and changed.startswith(b"t=") and b",v1=" in changed),
    ]  # fmt: skip
    assert len(bad) > 2500
    assert rolled.index(sign([new], int(rolled[2:12]), second.raw)[13:]) < rolled.rindex(",v1=")
    assert judge(good) == [True] * len(good)
    assert not any(judge(bad))


@pytest.fixture
def settings():
    return with_settings(
        webhooks={"allow_networks": ("127.0.0.0/8",), "allow_http": True},
        api={"rate_limit_per_minute": 100_000},
    )


@pytest.mark.parametrize("text", HAZARDS.values(), ids=HAZARDS.keys())
async def test_a_name_with_hazardous_characters_arrives_unchanged_with_a_valid_signature(
    running, receiver, text
):
    hook = {"url": receiver.url, "events": ["reservation.created"]}
    _, endpoint, _ = await running.call("POST", "/test/v1/webhooks", json=hook)
    body = a_body(customer={"name": f"{text}x Idrissi", "phone": "+212600000001"}, externalRef=text)

    status, _, _ = await running.call("POST", "/test/v1/reservations", json=body)

    assert status == 201
    [request] = await receiver.got(1)
    stamp, _, given = request.headers["x-service-signature"].partition(",v1=")
    signed = stamp.removeprefix("t=").encode() + b"." + request.raw
    key = endpoint["secret"].encode()
    assert hmac.compare_digest(hmac.new(key, signed, hashlib.sha256).hexdigest(), given)
    assert request.raw.isascii()
    assert request.reservation["externalRef"] == text
    assert request.reservation["customerFirstName"] == clean_line(f"{text}x Idrissi").split()[0]
