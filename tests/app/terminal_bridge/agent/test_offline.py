"""Offline verdicts of the bridge are never greener than those of the box."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.clock import parse_instant
from terminal_bridge.agent.client import Identity
from terminal_bridge.agent.offline import Context, decide_offline, read_snapshot
from tests.app.terminal_bridge.agent.conftest import ZONES

STATES = {
    "expected": {},
    "requested": {"status": "requested"},
    "pending": {"status": "pending"},
    "partial": {"status": "partial"},
    "cancelled": {"status": "cancelled"},
    "declined": {"status": "declined"},
    "inside": {"arrived": 2, "checked_in_at": 1},
    "half inside": {"arrived": 1, "checked_in_at": 1},
    "too early": {"slot": "22:00"},
    "soon": {"slot": "20:30"},
    "yesterday": {"date": "2026-11-20"},
    "tomorrow": {"date": "2026-11-22"},
}


@pytest.fixture
async def known(bridge, door):
    """Return what a bridge knows once the guests of the test are in its snapshot."""

    async def know(**changes):
        signed = await bridge.client.snapshot()
        identity = bridge.client.identity
        members = {
            "identity": identity, "snapshot": read_snapshot(signed, identity), "arrived": {},
            "zones": ZONES, "now": door.clock.now(),
        }  # fmt: skip
        return Context(**(members | changes))

    return know


@pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
async def test_the_bridge_gives_the_same_verdict_on_a_pass_as_the_box(door, known, state):
    text = await door.pass_of(await door.guest(**state))

    ours = decide_offline(text, await known())

    theirs = await door.scan(text, simulate=True, arrivals=1)
    assert (ours.result, ours.answer.colour) == (theirs["result"], theirs["colour"])
    assert ours.admitted == theirs["admitted"]


async def test_forged_test_and_replaced_passes_are_red(door, test_door, known):
    guest = await door.guest(generation=1)
    text = await door.pass_of(guest)
    others = await test_door.pass_of(await test_door.guest())
    await door.environment.database.write(
        lambda tx: tx.execute("UPDATE reservation SET generation = 2 WHERE id = ?", (guest.id,))
    )

    found = await known()

    forged = text[:-3] + ("B" if text[-3] == "A" else "A") + text[-2:]

    assert results(found, forged, others, text) == ["bad_signature", "test_code", "revoked"]


async def test_a_genuine_pass_missing_from_the_list_is_amber(door, known):
    found = await known()
    text = await door.pass_of(await door.guest())

    assert decide_offline(text, found).answer.colour == "amber"
    assert results(found, text, "https://box.example/access/abc") == ["unlisted", "needs_box"]
    assert results(await known(snapshot=None), text, "SVC-7K2M") == ["old_list", "needs_box"]


async def test_guests_admitted_offline_are_counted(door, known):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)

    assert decide_offline(text, await known(arrived={guest.id: 4})).result == "already_checked_in"
    half = decide_offline(text, await known(arrived={guest.id: 3}))
    assert (half.result, half.admitted, half.answer.party) == ("party_added", 1, "4/4")


async def test_a_snapshot_with_a_foreign_or_invalid_signature_is_rejected(bridge, door):
    await door.guest()
    signed = await bridge.client.snapshot()
    identity = bridge.client.identity

    assert read_snapshot(signed, identity) is not None
    for changes in (
        {"payload": signed["payload"].replace('"guests":2', '"guests":9')},
        {"kid": 77},
        {"signature": signed["signature"][:-4] + "AAAA"},
        {"signature": "!"},
        {"payload": None},
    ):
        assert read_snapshot(signed | changes, identity) is None


HOUR = 3_600_000


def results(known, *codes):
    return [decide_offline(code, known).result for code in codes]


async def test_an_access_code_matches_no_guest_one_guest_or_several_on_tonights_list(door, known):
    await door.guest(access_code="SVC-7K2M", customer_name="Sara Ben Ali")
    await door.guest(access_code="SVC-B2B2", table="T2")
    await door.guest(access_code="SVC-8Z8Z", table="T3")
    found = await known()

    assert results(found, "7k2m", "SVC-82B2", "SVC-XXXX", "22X4") == [
        "checked_in", "ambiguous", "unknown_code", "unknown_code",
    ]  # fmt: skip
    assert results(found, "4006381333931", "http://elsewhere.example/x1") == ["unknown_code"] * 2


@pytest.mark.parametrize(
    ("age", "listed", "other"),
    [(0, "checked_in", "unknown_code"), (11.9, "checked_in", "unknown_code"),
     (12, "old_list", "needs_box"), (-1, "old_list", "needs_box")],
)  # fmt: skip
async def test_nobody_is_admitted_by_a_guest_list_of_another_clock_or_older_than_twelve_hours(
    door, known, age, listed, other
):
    text = await door.pass_of(await door.guest(access_code="SVC-7K2M"))
    made_at = door.clock.now() - round(age * HOUR)
    snapshot = (await known()).snapshot
    found = await known(snapshot=replace(snapshot, made_at=made_at, expires_at=made_at + 12 * HOUR))

    assert results(found, text, "7K2M", "SVC-XXXX") == [listed, listed, other]


async def test_the_guest_whom_the_agent_admitted_by_code_stays_admitted_at_the_box(bridge, door):
    guest = await door.guest(access_code="SVC-DDDD")
    assert await bridge.reach()
    bridge.client.is_cut = True
    assert (await bridge.desk("QQQQ")).result == "checked_in"  # it resembles one code only
    other = await door.guest(access_code="SVC-QQQQ", table="T2")
    bridge.client.is_cut = False

    assert await bridge.reach()

    assert (await door.now_of(guest)).arrived == 1
    assert (await door.now_of(other)).arrived == 0


VECTORS = Path(__file__).parents[3] / "vectors"
OFFLINE = json.loads((VECTORS / "offline.json").read_text("utf-8"))
KEYS = json.loads((VECTORS / "guest_pass.json").read_text("utf-8"))


def signed_snapshot(vector, tag):
    """Return a vector's snapshot, signed as by a box with the vectors' key."""
    passes = {"passes": [OFFLINE["listed"] | vector.get("listed", {})]}
    content = {"venueTag": tag} | OFFLINE["snapshot"] | passes | vector.get("snapshot", {})
    payload = json.dumps(content)
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(KEYS["privateKey"]))
    signature = key.sign(b"svc-snapshot-v1" + payload.encode())
    return {"payload": payload, "kid": 1, "signature": base64.urlsafe_b64encode(signature).decode()}


@pytest.mark.parametrize("vector", OFFLINE["vectors"], ids=lambda vector: vector["note"])
def test_the_bridge_and_the_door_app_share_the_offline_decision_vectors(vector):
    tag = vector.get("venueTag", OFFLINE["venueTag"])
    public = base64.urlsafe_b64encode(bytes.fromhex(KEYS["publicKey"])).decode().rstrip("=")
    zone = OFFLINE["snapshot"]["timeZone"]
    identity = Identity("https://box.example", venue_tag=tag, time_zone=zone, keys=((1, public),))
    snapshot = None
    if vector.get("snapshot", {}) is not None:
        snapshot = read_snapshot(signed_snapshot(vector, tag), identity)
        assert snapshot is not None
    now = parse_instant(vector.get("now", OFFLINE["now"]))

    found = decide_offline(vector["text"], Context(identity, snapshot, {}, ZONES, now))

    assert (found.result, found.answer.colour) == (vector["result"], vector["colour"])
