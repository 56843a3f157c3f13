"""One test for each verdict of door.md, in the order of the checks."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.model.guest_pass import GuestPass, encode_pass, venue_tag
from appliance.model.verdict import COLOURS
from appliance.store.guest_passes import guest_pass_of
from appliance.store.reservations import update_reservation
from appliance.store.signing_keys import add_signing_key, get_signing_key
from tests.builders import TONIGHT, VENUE_ID

STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER_VENUE = "11111111-2222-4333-8444-555555555555"


async def sign(door, guest_pass: GuestPass) -> str:
    """A pass that this door's own key signed, whatever it says."""
    _, private_key = await door.environment.database.read(get_signing_key, door.environment.keyring)
    return encode_pass(guest_pass, private_key)


async def test_format_a_text_that_is_not_ours_is_an_unknown_code(door):
    verdict = await door.scan("https://menu.example/carte")

    assert (verdict["result"], verdict["colour"]) == ("unknown_code", "red")
    assert verdict["reservation"] is verdict["firstCheckIn"] is None
    assert verdict["overridable"] is False


async def test_signature_a_forged_pass_is_a_bad_signature(door):
    guest = await door.guest()
    forged = encode_pass(guest_pass_of(guest, "live", venue_tag(VENUE_ID), 1), STRANGER)

    assert (await door.scan(forged))["result"] == "bad_signature"


@pytest.mark.parametrize(
    "damage", [lambda t: t[:100], lambda t: t + "A", lambda t: t[:20] + "1" + t[21:]]
)
async def test_signature_a_damaged_pass_is_a_bad_signature(door, damage):
    text = await door.pass_of(await door.guest())

    verdict = await door.scan(damage(text))

    assert (verdict["result"], verdict["colour"]) == ("bad_signature", "red")
    assert "scan_again" in verdict["actions"]


@pytest.mark.proves("S12")
async def test_signature_every_single_wrong_character_is_refused(door):
    guest = await door.guest()
    text = await door.pass_of(guest)

    results = set()
    for place in range(4, len(text)):
        wrong = "B" if text[place] != "B" else "C"
        results.add((await door.scan(text[:place] + wrong + text[place + 1 :]))["result"])

    assert results == {"bad_signature"}
    assert (await door.now_of(guest)).arrived == 0


@pytest.mark.proves("decision: What is the test environment?", "S12")
async def test_environment_a_test_pass_at_a_live_door_is_a_test_code_and_the_reverse(
    door, test_door
):
    of_live, of_test = await door.guest(), await test_door.guest()

    at_live = await door.scan(await test_door.pass_of(of_test))
    at_test = await test_door.scan(await door.pass_of(of_live))

    assert (at_live["result"], at_live["colour"]) == ("test_code", "red")
    assert at_test["result"] == "test_code"


async def test_venue_the_pass_of_another_box_is_of_the_wrong_venue(door):
    guest = await door.guest()
    text = encode_pass(guest_pass_of(guest, "live", venue_tag(OTHER_VENUE), 1), STRANGER)

    verdict = await door.scan(text)

    assert (verdict["result"], verdict["colour"]) == ("wrong_venue", "red")


@pytest.mark.proves("S12")
async def test_venue_a_pass_of_another_venue_is_refused_even_under_our_signature(door):
    guest = await door.guest()
    text = await sign(door, guest_pass_of(guest, "live", venue_tag(OTHER_VENUE), 1))

    assert (await door.scan(text))["result"] == "wrong_venue"


async def test_known_a_genuine_pass_of_no_reservation_is_an_unknown_code(door):
    stranger = GuestPass(
        1, 1, venue_tag(VENUE_ID), bytes(8), date.fromisoformat(TONIGHT), None, 2, 0
    )

    assert (await door.scan(await sign(door, stranger)))["result"] == "unknown_code"


async def test_revoked_a_pass_of_an_older_generation_was_replaced(door):
    guest = await door.guest(status="cancelled")
    old = await door.pass_of(guest)
    await door.environment.database.write(update_reservation, guest.id, generation=1)

    verdict = await door.scan(old)

    assert (verdict["result"], verdict["colour"]) == ("revoked", "red")
    assert verdict["overridable"] is True


async def test_revoked_the_pass_of_the_newest_generation_is_good(door):
    guest = await door.guest(generation=3)

    assert (await door.scan(await door.pass_of(guest)))["result"] == "checked_in"


@pytest.mark.parametrize("status", ["cancelled", "declined"])
async def test_cancelled_or_declined_the_table_was_freed(door, status):
    guest = await door.guest(status=status, date="2026-11-20")

    verdict = await door.scan(await door.pass_of(guest))

    assert (verdict["result"], verdict["colour"]) == (status, "red")
    assert verdict["overridable"] is True
    assert "override" in verdict["actions"]


@pytest.mark.proves("V9")
@pytest.mark.parametrize(
    ("day", "result", "in_words"),
    [
        ("2026-11-22", "not_yet", "dimanche 22 novembre"),
        ("2026-11-20", "too_late", "vendredi 20 novembre"),
    ],
)
async def test_evening_a_guest_of_another_evening_is_told_which(door, day, result, in_words):
    guest = await door.guest(date=day, status="requested")

    verdict = await door.scan(await door.pass_of(guest))

    assert (verdict["result"], verdict["colour"]) == (result, "amber")
    assert in_words in verdict["say"]["guest"]


async def test_not_confirmed_a_request_is_not_a_reservation_yet(door):
    guest = await door.guest(status="requested")

    verdict = await door.scan(await door.pass_of(guest))

    assert (verdict["result"], verdict["colour"]) == ("not_confirmed", "amber")


@pytest.mark.parametrize("status", ["pending", "partial"])
async def test_payment_what_is_not_paid_in_full_is_due(door, status):
    guest = await door.guest(status=status)

    verdict = await door.scan(await door.pass_of(guest))

    assert (verdict["result"], verdict["colour"]) == ("payment_due", "amber")
    assert (await door.now_of(guest)).checked_in_at is None


async def test_party_the_first_scan_checks_the_whole_party_in(door):
    guest = await door.guest(guests=4, access_code="SVC-7K2M")

    verdict = await door.scan(await door.pass_of(guest))

    assert (verdict["result"], verdict["colour"]) == ("checked_in", "green")
    assert verdict["reservation"] == {
        "id": guest.id,
        "accessCode": "SVC-7K2M",
        "customerFirstName": "Salma",
        "table": {"id": guest.table_id, "name": "Terrasse 1"},
        "date": TONIGHT,
        "slot": None,
        "guests": 4,
        "arrived": 4,
        "notes": "Près de la fenêtre",
        "vip": False,
        "status": "confirmed",
    }
    assert verdict["firstCheckIn"] == {
        "at": "2026-11-21T19:00:00.000Z", "terminal": "Porte 1", "by": None,
    }  # fmt: skip
    assert verdict["actions"] == ["undo"]
    assert (await door.now_of(guest)).checked_in_at == door.clock.now()


async def test_party_a_later_scan_shows_who_let_them_in_first(door, clock):
    guest = await door.guest(guests=4)
    await door.scan(await door.pass_of(guest))
    clock.advance(600)

    verdict = await (await door.other("Porte 2")).scan(await door.pass_of(guest))

    assert (verdict["result"], verdict["colour"]) == ("already_checked_in", "amber")
    assert verdict["firstCheckIn"]["at"] == "2026-11-21T19:00:00.000Z"
    assert verdict["firstCheckIn"]["terminal"] == "Porte 1"
    assert "19:00" in verdict["say"]["staff"]
    assert "Porte 1" in verdict["say"]["staff"]


async def test_party_the_rest_of_a_party_is_added(door):
    guest = await door.guest(guests=4)
    await door.scan(await door.pass_of(guest), arrivals=1)

    verdict = await door.scan(await door.pass_of(guest), arrivals=2)

    assert (verdict["result"], verdict["colour"]) == ("party_added", "green")
    assert verdict["reservation"]["arrived"] == 3


async def test_party_more_people_than_booked_are_too_many(door):
    guest = await door.guest(guests=2)

    verdict = await door.scan(await door.pass_of(guest), arrivals=3)

    assert (verdict["result"], verdict["colour"]) == ("party_full", "amber")
    assert (await door.now_of(guest)).arrived == 0


async def test_ambiguous_a_typed_code_that_fits_several_lets_staff_pick(door):
    first = await door.guest(access_code="SVC-Q234")
    second = await door.guest(access_code="SVC-D234", table="T2", customer_name="Omar Alami")

    verdict = await door.scan("O234")

    assert (verdict["result"], verdict["colour"]) == ("ambiguous", "amber")
    assert verdict["actions"] == ["pick"]
    assert {c["id"] for c in verdict["candidates"]} == {first.id, second.id}
    assert {c["customerFirstName"] for c in verdict["candidates"]} == {"Salma", "Omar"}
    assert (await door.now_of(first)).arrived == (await door.now_of(second)).arrived == 0


async def test_undone_a_check_in_taken_back_is_grey(door):
    guest = await door.guest()
    await door.scan(await door.pass_of(guest), scanId="one")

    status, verdict = await door.call("POST", "/scans/one/undo")

    assert status == 200
    assert (verdict["result"], verdict["colour"]) == ("undone", "grey")


async def test_error_our_own_fault_is_grey_and_never_a_success(door):
    text = await door.pass_of(await door.guest())
    door.environment.database._writer._broken = True

    status, body = await door.call("POST", "/scans", {"scanId": "one", "code": text})

    assert status == 503
    assert (body["result"], body["colour"], body["code"]) == ("error", "grey", "UNAVAILABLE")
    assert body["scanId"] == "one"
    assert body["say"]["staff"]


def test_every_verdict_of_the_vocabulary_has_a_test_in_this_file():
    tested = Path(__file__).read_text("utf-8")

    assert [result for result in COLOURS if f'"{result}"' not in tested] == []


async def test_a_replaced_signing_key_still_verifies_the_passes_it_signed(door):
    guest = await door.guest()
    old = await door.pass_of(guest)
    await door.environment.database.write(add_signing_key, door.environment.keyring)

    assert await door.pass_of(guest) != old
    assert (await door.scan(old))["result"] == "checked_in"


@pytest.mark.proves("S12")
async def test_a_pass_of_a_key_id_that_does_not_exist_is_a_bad_signature(door):
    guest_pass = guest_pass_of(await door.guest(), "live", venue_tag(VENUE_ID), 1)

    assert (await door.scan(await sign(door, replace(guest_pass, kid=9))))[
        "result"
    ] == "bad_signature"
