"""The keys that sign guest passes, replaced in the portal."""

import pytest

from appliance.store.guest_passes import pass_text
from appliance.store.reservations import get_reservation
from tests.web.portal.door_room import a_pass, a_terminal, scan
from tests.web.portal.people import a_person


@pytest.mark.proves("decision: A signing key that leaked?")
async def test_a_new_signing_key_leaves_old_passes_good(running):
    person = await a_person(running, "manager")
    _, text = await a_pass(running)
    _, token = await a_terminal(running)

    status, _, _ = await person.post("/portal/door/keys/rotate")

    assert status == 303
    assert (await scan(running, token, text))[1]["result"] == "checked_in"
    page = (await person.get("/portal/door/keys"))[1]
    assert "It is 0 days old." in page
    assert "only verifies" in page


@pytest.mark.proves("decision: A signing key that leaked?")
async def test_after_a_leak_old_passes_are_revoked_and_the_link_shows_a_good_one(running):
    person = await a_person(running, "owner")
    reservation, old = await a_pass(running)
    _, token = await a_terminal(running)

    status, _, _ = await person.post("/portal/door/keys/leaked")

    assert status == 303
    assert (await scan(running, token, old, "old"))[1]["result"] == "revoked"
    renewed = await running.live.database.read(get_reservation, reservation.id)
    assert renewed.generation == 1
    fresh = await running.live.database.read(pass_text, running.live.keyring, "live", renewed)
    assert (await scan(running, token, fresh, "new"))[1]["result"] == "checked_in"


async def test_only_an_owner_replaces_a_leaked_key(running):
    person = await a_person(running, "manager")

    assert (await person.post("/portal/door/keys/leaked"))[0] == 403
    assert "wrong hands" not in (await person.get("/portal/door/keys"))[1]
