"""Signatures of real deliveries, judged by libraries that are not ours (row 30)."""

import base64
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import stripe

from appliance.actions.roll_secret import roll_secret
from appliance.webhooks.signature import sign

ROOT = Path(__file__).parents[3]
FRONTEND = ROOT / "web" / "frontend"
FOREVER = 0  # what the libraries take for: whatever its age


def judged_by_python(cases):
    return [_accepts(*case) for case in cases]


def _accepts(payload, header, secret, tolerance=FOREVER):
    try:
        text = payload.decode("latin-1")  # the library encodes it: only ASCII comes out the same
        return stripe.WebhookSignature.verify_header(text, header, secret, tolerance or None)
    except stripe.SignatureVerificationError:
        return False


def judged_by_node(cases, tmp_path):
    """All cases in one process. The script stands where Node finds the library."""
    folder = tmp_path / "partner"
    folder.mkdir(exist_ok=True)
    (folder / "node_modules").symlink_to(FRONTEND / "node_modules")
    script = shutil.copy(Path(__file__).with_name("verify.mjs"), folder)
    told = [
        {"payload": base64.b64encode(payload).decode(), "header": header, "secret": secret,
         "tolerance": rest[0] if rest else FOREVER}
        for payload, header, secret, *rest in cases
    ]  # fmt: skip
    found = subprocess.run(
        [Path(sys.executable).with_name("node"), "--preserve-symlinks", script],
        input=json.dumps(told), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@pytest.fixture(params=["python", "node"])
def judge(request, tmp_path):
    """`judge([(payload, header, secret), …])`: which of them the library accepts."""
    if request.param == "python":
        return judged_by_python
    return lambda cases: judged_by_node(cases, tmp_path)


def flipped(raw):
    """Every text that differs from `raw` in one bit."""
    for bit in range(8 * len(raw)):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


@pytest.fixture
async def delivered(world, receiver):
    """A delivery as it arrived: (raw body, header, secret)."""
    _, secret = await world.register(receiver.url)
    await world.start()
    await world.book(customer_name='Salmâ \u2028 \u202e🎉 \\u0000 "quoted"')
    [request] = await receiver.got(1)
    return request.raw, request.headers["x-service-signature"], secret


async def test_row_30_the_library_accepts_what_arrived_and_no_other_secret(delivered, judge):
    raw, header, secret = delivered

    assert judge([delivered, (raw, header, secret[:-1] + "~"), (raw, header, secret[6:])]) == [
        True, False, False
    ]  # fmt: skip


async def test_row_30_one_bit_in_the_body_is_refused(delivered, judge):
    raw, header, secret = delivered
    cases = [(changed, header, secret) for changed in flipped(raw)]

    assert len(cases) > 2000
    assert not any(judge(cases))


async def test_row_30_one_bit_in_time_or_digest_is_refused(delivered, judge):
    raw, header, secret = delivered
    t, v1 = (part.partition("=")[2].encode() for part in header.split(","))
    changes = [(changed, v1) for changed in flipped(t)] + [(t, changed) for changed in flipped(v1)]
    # On what is not ASCII both libraries stop with an error of their own.
    changes = [change for change in changes if b"".join(change).isascii()]
    cases = [
        (raw, f"t={time_.decode('latin-1')},v1={digest.decode('latin-1')}", secret)
        for time_, digest in changes
    ]

    assert len(cases) == 7 * (10 + 64)
    assert not any(judge(cases))


async def test_row_30_during_a_roll_either_secret_is_accepted_with_the_newest_first(
    world, receiver, delivered, judge
):
    _, _, old = delivered
    [(endpoint_id,)] = world.rows("SELECT id FROM endpoint")

    new = await world.database.write(roll_secret, world.environment.keyring, endpoint_id)
    await world.book()
    _, request = await receiver.got(2)

    header = request.headers["x-service-signature"]
    t, first, second = (part.partition("=")[2] for part in header.split(","))
    assert f"t={t},v1={first}" == sign([new], int(t), request.raw)
    assert f"t={t},v1={second}" == sign([old], int(t), request.raw)
    assert judge([(request.raw, header, new), (request.raw, header, old)]) == [True, True]


def test_row_30_a_signature_older_than_300_seconds_is_refused_by_whoever_looks(judge):
    now, body, secret = int(time.time()), b"{}", "whsec_x"

    cases = [(body, sign([secret], now - age, body), secret, 300) for age in (0, 400)]

    assert judge(cases) == [True, False]
