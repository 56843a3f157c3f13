"""The signed snapshot contains everything that an offline terminal needs, and nothing else."""

import base64
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from appliance.door.guest_pass import decode_pass
from tests.app.terminal_bridge.listening import listening


async def take(door) -> tuple[dict, dict]:
    """Return (the answer, its payload), verified with the keys of `/me`."""
    status, taken = await door.call("GET", "/snapshot")
    assert status == 200
    _, me = await door.call("GET", "/me")
    (key,) = [k["publicKey"] for k in me["publicKeys"] if k["kid"] == taken["kid"]]
    public_key = Ed25519PublicKey.from_public_bytes(raw(key))
    signed = b"svc-snapshot-v1" + taken["payload"].encode()
    public_key.verify(raw(taken["signature"]), signed)
    return taken, json.loads(taken["payload"])


def raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def ask(door, etag: str) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {door.token}", "If-None-Match": etag}
    async with door.client.get("/terminal/v1/snapshot", headers=headers) as response:
        return response.status, response.headers["ETag"]


async def test_the_snapshot_lists_tonights_passes_and_is_signed(door):
    guest = await door.guest(access_code="SVC-7K2M", slot="19:30", guests=3, generation=2)
    await door.scan(await door.pass_of(guest), arrivals=1)

    _, payload = await take(door)

    assert {name: value for name, value in payload.items() if name != "passes"} == {
        "environment": "live",
        "venueTag": decode_pass(await door.pass_of(guest)).guest_pass.venue_tag.hex(),
        "evening": "2026-11-21",
        "eveningEndsAt": "06:00",
        "madeAt": "2026-11-21T19:00:00.000Z",
        "expiresAt": "2026-11-22T07:00:00.000Z",
        "earlyMinutes": 120,
        "timeZone": "Africa/Casablanca",
        "slots": [{"start": "19:30", "end": "22:00"}, {"start": "22:00", "end": "01:00"}],
        "withoutTable": 0,
    }
    assert payload["passes"] == [
        {
            "passId": guest.pass_id.hex(),
            "generation": 2,
            "reservationId": guest.id,
            "guests": 3,
            "arrived": 1,
            "state": "confirmed",
            "firstName": "Salma I.",
            "phoneEnd": "57",
            "searchedName": "Salma Idrissi",
            "table": "Terrasse 1",
            "tableNumber": "T1",
            "slot": "19:30",
            "accessCode": "SVC-7K2M",
            "firstCheckIn": {"at": "2026-11-21T19:00:00.000Z", "terminal": "Porte 1", "by": None},
        }
    ]


async def test_a_terminal_with_the_scan_role_gets_only_first_names(door):
    guest = await door.guest(access_code="SVC-7K2M")
    turnstile = await door.other("Tourniquet", role="scan")

    _, payload = await take(turnstile)
    async with listening(turnstile) as ear:
        verdict = await turnstile.scan(await door.pass_of(guest))
        row = (await ear.next()).data["reservation"]

    assert payload["passes"][0]["firstName"] == "Salma"
    assert verdict["reservation"]["customerFirstName"] == row["customerFirstName"] == "Salma"
    for said in (payload, verdict, row):
        assert "Idrissi" not in str(said)
        assert "phoneEnd" not in str(said)


async def test_the_snapshot_excludes_other_evenings_and_marks_refused_guests(door):
    await door.guest(date="2026-11-22")
    await door.guest(table="T2", status="cancelled")

    _, payload = await take(door)

    assert [found["state"] for found in payload["passes"]] == ["cancelled"]


async def test_an_unchanged_snapshot_is_not_sent_again_within_an_hour(door):
    guest = await door.guest()
    _, first = await ask(door, '"nothing"')
    door.clock.advance(60)
    assert await ask(door, first) == (304, first)

    await door.scan(await door.pass_of(guest))
    status, second = await ask(door, first)
    door.clock.advance(3600)
    status_later, third = await ask(door, second)

    assert (status, status_later) == (200, 200)
    assert len({first, second, third}) == 3
