"""Comparing a password takes a while: what another request does in it is not undone by it."""

import argon2
import pytest

from appliance.actions.create_staff import create_staff
from appliance.actions.manage_staff import change_role, disable_staff, enable_staff, end_sessions
from appliance.actions.second_step import confirm_second_step, offer_second_step
from appliance.actions.sign_in import change_password
from appliance.model.totp import totp_code
from appliance.store.second_steps import has_second_step
from appliance.store.sessions import list_sessions
from appliance.store.staff import find_password, set_password
from tests.web.portal.people import a_person
from web.portal.passwords import PASSWORDS

OLD, NEW, THEIRS = "le thé est servi à minuit", "une menthe fraîche au matin", "et du sucre"
HASHER = argon2.PasswordHasher(memory_cost=64, parallelism=1, time_cost=1)
HASH, NEW_HASH = HASHER.hash(OLD), HASHER.hash(NEW)
FROM_OURS = {"Sec-Fetch-Site": "same-origin", "Accept-Language": "en"}


@pytest.fixture
def meanwhile(running, monkeypatch):
    """`meanwhile("matches", act)`: `act()` happens after a password was compared, or hashed."""
    passwords = running.app[PASSWORDS]

    def let(name, act):
        slow = getattr(passwords, name)

        async def then(*args, **kwargs):
            found = await slow(*args, **kwargs)
            await act()
            return found

        monkeypatch.setattr(passwords, name, then)

    return let


async def an_account(running, name="Yasmine", role="manager"):
    def make(tx):
        staff_id = create_staff(tx, name, role).staff_id
        set_password(tx, staff_id, HASH)
        return staff_id

    return await running.live.database.write(make)


async def signed_in(running, role="manager"):
    person = await a_person(running, role)
    await running.live.database.write(set_password, person.id, HASH)
    return person


async def test_the_old_password_opens_no_session_that_outlives_it(running, meanwhile):
    yasmine = await an_account(running)
    meanwhile("matches", lambda: running.live.database.write(change_password, yasmine, NEW_HASH))

    async with running.client.post(
        "/portal/sign-in", data={"name": "Yasmine", "password": OLD}, headers=FROM_OURS,
        allow_redirects=False,
    ) as response:  # fmt: skip
        text = await response.text()

    assert response.status == 401
    assert "This name and password do not belong together." in text
    assert await running.live.database.read(list_sessions, yasmine) == []


async def test_who_is_sent_away_meanwhile_has_no_session_when_they_come_back(running, meanwhile):
    await a_person(running, "owner")
    yasmine = await an_account(running)
    meanwhile("matches", lambda: running.live.database.write(disable_staff, yasmine))

    async with running.client.post(
        "/portal/sign-in", data={"name": "Yasmine", "password": OLD}, headers=FROM_OURS,
        allow_redirects=False,
    ) as response:  # fmt: skip
        assert response.status == 401

    await running.live.database.write(enable_staff, yasmine)
    assert await running.live.database.read(list_sessions, yasmine) == []


async def test_a_session_that_was_ended_sets_no_password_after_that(running, meanwhile):
    person = await signed_in(running)
    meanwhile("hash", lambda: running.live.database.write(change_password, person.id, NEW_HASH))

    status, text, _ = await person.post(
        "/portal/account/password", {"password": OLD, "new": THEIRS + NEW}
    )

    assert status == 409
    assert "Somebody changed this meanwhile" in text
    assert await running.live.database.read(find_password, person.id) == NEW_HASH


async def _set_another(running, person):
    await running.live.database.write(set_password, person.id, NEW_HASH)


async def _end_all(running, person):
    await running.live.database.write(end_sessions, person.id, actor="console")


async def _take_role(running, person):
    await running.live.database.write(change_role, person.id, "manager", "door")


@pytest.mark.parametrize("act", [_set_another, _end_all, _take_role])
async def test_a_second_step_stays_where_the_person_was_doubted_meanwhile(running, meanwhile, act):
    person, database, keyring = (
        await signed_in(running),
        running.live.database,
        running.live.keyring,
    )
    secret = await database.write(offer_second_step, keyring, person.id)
    code = totp_code(secret, running.clock.now() // 30_000)
    await database.write(confirm_second_step, keyring, person.id, code)
    meanwhile("matches", lambda: act(running, person))

    status, _, _ = await person.post("/portal/account/second-step/remove", {"password": OLD})

    assert status == 400
    assert await database.read(has_second_step, person.id)
