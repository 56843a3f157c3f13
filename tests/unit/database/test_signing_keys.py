import pytest

from appliance.core.errors import OperatorError
from appliance.core.tokens import Keyring
from appliance.door.guest_pass import (
    add_signing_key,
    decode_pass,
    find_verifying_key,
    get_signing_key,
    list_public_keys,
    pass_text,
)
from tests.unit.arrivals import add_reservation


@pytest.mark.parametrize(
    ("now", "verifies"), [("2026-12-02T23:59:59Z", True), ("2026-12-03T00:00:00Z", False)]
)
async def test_an_old_signing_key_verifies_until_two_days_after_the_last_pass_it_signed(
    box, clock, now, verifies
):
    database = box.live.database
    await database.write(add_reservation, date="2026-11-30")
    clock.advance(1)
    await database.write(add_signing_key, box.live.keyring)
    clock.advance(1)
    await database.write(add_reservation, date="2027-06-01")  # signed by the new key
    clock.set(now)

    found = await database.read(find_verifying_key, box.live.keyring, 1)

    assert (found is not None) == verifies
    assert len(await database.read(list_public_keys)) == 1 + verifies


async def test_the_current_signing_key_verifies_even_without_reservations(box, clock):
    clock.set("2031-01-01T00:00:00Z")

    assert await box.live.database.read(find_verifying_key, box.live.keyring, 1) is not None


async def test_the_stored_signing_key_is_encrypted(box):
    database, keyring = box.live.database, box.live.keyring
    _, private_key = await database.read(get_signing_key, keyring)

    stored = await database.read(lambda reader: reader.value("SELECT private_key FROM signing_key"))

    assert private_key.private_bytes_raw() not in stored


async def test_a_signing_key_of_another_box_is_refused_with_a_remedy(box):
    with pytest.raises(OperatorError, match=r"master\.key"):
        await box.live.database.read(get_signing_key, Keyring(bytes(32), "live"))


async def test_a_pass_is_signed_again_with_the_current_key(box):
    database, keyring = box.live.database, box.live.keyring
    guest = await database.write(add_reservation, slot="22:00", guests=4)

    text = await database.read(pass_text, keyring, "live", guest)
    assert await database.read(pass_text, keyring, "live", guest) == text
    before = decode_pass(text)
    await database.write(add_signing_key, keyring)
    after = decode_pass(await database.read(pass_text, keyring, "live", guest))

    assert (before.guest_pass.kid, after.guest_pass.kid) == (1, 2)
    assert before.guest_pass.pass_id == after.guest_pass.pass_id == guest.pass_id
    assert (after.guest_pass.slot, after.guest_pass.guests) == ("22:00", 4)
    keys = {key.kid: key.public_key for key in await database.read(list_public_keys)}
    assert list(keys) == [2, 1]
    assert after.is_signed_by(keys[2])
    assert not after.is_signed_by(keys[1])
