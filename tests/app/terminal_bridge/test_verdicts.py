"""Each verdict of the door protocol, in the order of the checks. No forged pass is accepted."""

import random

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from appliance.door.guest_pass import (
    GuestPass,
    add_signing_key,
    decode_pass,
    decode_passes,
    encode_pass,
    get_signing_key,
    guest_pass_of,
    venue_tag,
)
from appliance.door.scan import look_up_code
from appliance.reservations.rows import update_reservation
from tests.app.terminal_bridge.mutations import mutate
from tests.builders import TONIGHT, VENUE_ID

STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER_VENUE = "11111111-2222-4333-8444-555555555555"
MANY, SOME = 2_000, 100  # `make soak` tries a million


def a_pass(guest, **changes) -> GuestPass:
    return replace(guest_pass_of(guest, "live", venue_tag(VENUE_ID), 1), **changes)


async def sign(door, guest_pass: GuestPass) -> str:
    """Return a pass with any content, signed with this door's own key."""
    _, private_key = await door.environment.database.read(get_signing_key, door.environment.keyring)
    return encode_pass(guest_pass, private_key)


@pytest.mark.parametrize("damage", [lambda t: t[:100], lambda t: t[:-1], lambda t: t[:50] + t[51:]])
async def test_an_incomplete_pass_is_unknown_and_not_reported_as_forged(door, damage):
    verdict = await door.scan(damage(await door.pass_of(await door.guest())))

    assert (verdict["result"], verdict["colour"]) == ("unknown_code", "red")
    assert "scan_again" in verdict["actions"]


async def test_a_pass_with_any_wrong_character_has_a_bad_signature(door):
    guest = await door.guest()
    text = await door.pass_of(guest)

    results = set()
    for place in range(4, len(text)):
        wrong = "B" if text[place] != "B" else "C"
        results.add((await door.scan(text[:place] + wrong + text[place + 1 :]))["result"])

    assert results == {"bad_signature"}
    assert (await door.now_of(guest)).arrived == 0


async def test_passes_of_another_venue_key_or_reservation_get_different_verdicts(door):
    guest = await door.guest()
    elsewhere = a_pass(guest, venue_tag=venue_tag(OTHER_VENUE))
    texts = [
        (encode_pass(a_pass(guest), STRANGER), "bad_signature"),
        (await sign(door, a_pass(guest, kid=9)), "bad_signature"),
        (encode_pass(elsewhere, STRANGER), "wrong_venue"),
        (await sign(door, elsewhere), "wrong_venue"),
        (await sign(door, a_pass(guest, pass_id=bytes(8))), "unknown_code"),
    ]

    for text, result in texts:
        assert (await door.scan(text))["result"] == result
    assert (await door.now_of(guest)).arrived == 0


async def test_a_pass_of_the_other_environment_is_recognised_at_each_door(door, test_door):
    of_live, of_test = await door.guest(), await test_door.guest()

    at_live = await door.scan(await test_door.pass_of(of_test))
    at_test = await test_door.scan(await door.pass_of(of_live))

    assert (at_live["result"], at_live["colour"]) == ("test_code", "red")
    assert at_test["result"] == "test_code"


async def test_a_manipulated_pass_is_red(door):
    seed = random.randrange(10**6)
    print(f"\nseed {seed}")
    chance = random.Random(seed)
    passes = [await door.pass_of(await door.guest(table=f"T{n}")) for n in (1, 2, 3)]
    genuine = {decode_pass(text).signed for text in passes}
    environment = door.environment
    accepted, refused = [], 0

    for number in range(MANY):
        text = mutate(chance, passes)
        reading = environment.database.peek(
            look_up_code, environment.keyring, "live", text, by_name=False
        )
        if reading.guest_pass is None:
            refused += 1
        elif reading.guest_pass.to_bytes() not in genuine:
            accepted.append(text)
        if number < SOME and not any(read.signed in genuine for read in decode_passes(text)):
            sent = text.replace("\0", "") or "SVC1"  # JSON with NUL is refused
            assert (await door.scan(sent, simulate=True))["colour"] == "red", text

    assert accepted == []
    assert refused > 0.9 * MANY  # the other texts are equivalent spellings of the pass


async def test_passes_signed_with_a_replaced_signing_key_are_still_valid(door):
    guest = await door.guest()
    old = await door.pass_of(guest)
    await door.environment.database.write(add_signing_key, door.environment.keyring)

    assert await door.pass_of(guest) != old
    assert (await door.scan(old))["result"] == "checked_in"


async def test_a_pass_of_an_older_generation_is_reported_as_replaced(door):
    guest = await door.guest(status="cancelled", generation=2)
    old = await door.pass_of(guest)
    await door.environment.database.write(update_reservation, guest.id, generation=3)

    verdict = await door.scan(old)

    assert (verdict["result"], verdict["colour"]) == ("revoked", "amber")
    assert verdict["overridable"] is True


async def test_the_first_scan_checks_in_the_whole_party(door):
    guest = await door.guest(guests=4, access_code="SVC-7K2M")

    verdict = await door.scan(await door.pass_of(guest))

    assert (verdict["result"], verdict["colour"]) == ("checked_in", "green")
    assert verdict["reservation"] == {
        "id": guest.id,
        "accessCode": "SVC-7K2M",
        "customerFirstName": "Salma I.",
        "phoneEnd": "57",
        "table": {"id": guest.table_id, "name": "Terrasse 1"},
        "date": TONIGHT,
        "slot": None,
        "guests": 4,
        "arrived": 4,
        "out": 0,
        "wentOutAt": None,
        "notes": "Près de la fenêtre",
        "vip": False,
        "status": "confirmed",
    }
    assert verdict["firstCheckIn"] == {
        "at": "2026-11-21T19:00:00.000Z", "terminal": "Porte 1", "by": None,
    }  # fmt: skip
    assert verdict["actions"] == ["undo"]
    assert (await door.now_of(guest)).checked_in_at == door.clock.now()


async def test_a_typed_code_that_matches_several_guests_lets_staff_choose(door):
    first = await door.guest(access_code="SVC-Q234")
    second = await door.guest(access_code="SVC-D234", table="T2", customer_name="Omar Alami")

    verdict = await door.scan("O234")

    assert (verdict["result"], verdict["colour"]) == ("ambiguous", "amber")
    assert verdict["actions"] == ["pick"]
    assert {c["id"] for c in verdict["candidates"]} == {first.id, second.id}
    assert {c["customerFirstName"] for c in verdict["candidates"]} == {"Salma I.", "Omar A."}
    assert (await door.now_of(first)).arrived == (await door.now_of(second)).arrived == 0


async def test_no_verdict_shows_contact_data(door):
    text = await door.pass_of(await door.guest(access_code="SVC-7K2M"))

    said = [await door.scan(code) for code in (text, text, "7K2M", "Salma")]

    for private in ("salma@example.com", "123 457", "Idrissi"):
        assert private not in str(said)


async def test_a_verdict_is_in_the_language_of_its_terminal(door):
    text = await door.pass_of(await door.guest())

    said = [
        (await (await door.other(language, language=language)).scan(text, simulate=True))["say"]
        for language in ("fr", "en", "ar")
    ]

    assert len({each["staff"] for each in said}) == len({each["guest"] for each in said}) == 3
