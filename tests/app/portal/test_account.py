"""The account page: sessions, the password, and changes during the hashing of a password."""

import pytest

from appliance.staff.accounts import change_role, disable_staff, enable_staff, end_sessions
from appliance.staff.model import set_password
from appliance.staff.sign_in import change_password, list_sessions, start_session
from appliance.staff.two_factor import (
    confirm_two_factor,
    has_two_factor,
    offer_two_factor,
    totp_code,
)
from tests.app.portal.people import (
    FROM_OURS,
    NEW_HASH,
    NEW_PASSWORD,
    PASSWORD,
    Person,
    a_person,
    an_account,
    with_password,
)
from web.portal.guard import PASSWORDS

OLD, NEW, THEIRS = PASSWORD, NEW_PASSWORD, "et du sucre"


async def another_browser(running, person) -> Person:
    session = await running.live.database.write(start_session, person.id, None, "Safari, iPhone")
    return Person(person.id, running, session)


async def test_a_person_cannot_end_the_session_of_another(running):
    mallory, victim = await a_person(running, "owner"), await a_person(running, "door")
    [session] = await running.live.database.read(list_sessions, victim.id)
    assert (await mallory.post(f"/portal/account/sessions/{session.id}/end"))[0] == 404
    assert (await victim.get("/portal/account"))[0] == 200


@pytest.mark.parametrize("which", ["{id}/end", "end-others"])
async def test_signing_out_other_browsers_keeps_the_current_session(running, which):
    here = await a_person(running, "door")
    there = await another_browser(running, here)
    sessions = await running.live.database.read(list_sessions, here.id)
    [other] = [s for s in sessions if s.device == "Safari, iPhone"]

    status, _, _ = await here.post(f"/portal/account/sessions/{which.format(id=other.id)}")

    assert status == 303
    assert (await there.get("/portal"))[2]["Location"].startswith("/portal/sign-in")
    assert (await here.get("/portal/account"))[0] == 200


async def test_a_new_password_needs_the_current_one_and_ends_every_session(running):
    here = await with_password(running, "door")
    there = await another_browser(running, here)

    wrong = await here.post("/portal/account/password", {"password": "wrong", "new": NEW})
    weak = await here.post("/portal/account/password", {"password": OLD, "new": "azerty123"})
    assert (wrong[0], weak[0]) == (400, 400)
    status, _, headers = await here.post("/portal/account/password", {"password": OLD, "new": NEW})

    assert (status, headers["Location"]) == (303, "/portal/sign-in?note=password-changed")
    for browser in (here, there):
        assert (await browser.get("/portal"))[2]["Location"].startswith("/portal/sign-in")


async def test_guesses_of_the_current_password_are_limited_in_an_open_session(running):
    here = await with_password(running, "door")
    for _ in range(5):
        await here.post("/portal/account/password", {"password": "wrong", "new": NEW})
    status, _, _ = await here.post("/portal/account/password", {"password": OLD, "new": NEW})
    assert status == 429


@pytest.fixture
def meanwhile(running, monkeypatch):
    """Return `meanwhile(method, act)`: run `act()` after that method of Passwords."""
    passwords = running.app[PASSWORDS]

    def let(name, act):
        slow = getattr(passwords, name)

        async def then(*args, **kwargs):
            found = await slow(*args, **kwargs)
            await act()
            return found

        monkeypatch.setattr(passwords, name, then)

    return let


@pytest.mark.parametrize("act", [change_password, disable_staff])
async def test_no_session_survives_a_change_of_the_password(running, meanwhile, owner, act):
    yasmine = await an_account(running, role="manager")
    given = (yasmine, NEW_HASH) if act is change_password else (yasmine,)
    meanwhile("matches", lambda: running.live.database.write(act, *given))

    async with running.client.post(
        "/portal/sign-in", data={"name": "Yasmine", "password": OLD}, headers=FROM_OURS,
        allow_redirects=False,
    ) as response:  # fmt: skip
        assert response.status == 401

    await running.live.database.write(enable_staff, yasmine)
    assert await running.live.database.read(list_sessions, yasmine) == []


@pytest.mark.parametrize(
    "act",
    [lambda tx, who: set_password(tx, who, NEW_HASH),
     lambda tx, who: end_sessions(tx, who, actor="console"),
     lambda tx, who: change_role(tx, who, "manager", "door")],
)  # fmt: skip
async def test_two_step_verification_stays_if_the_account_changes_during_its_removal(
    running, meanwhile, act
):
    person, database, keyring = (
        await with_password(running, "manager"),
        running.live.database,
        running.live.keyring,
    )
    secret = await database.write(offer_two_factor, keyring, person.id)
    code = totp_code(secret, running.clock.now() // 30_000)
    await database.write(confirm_two_factor, keyring, person.id, code)
    meanwhile("matches", lambda: database.write(act, person.id))

    status, _, _ = await person.post("/portal/account/second-step/remove", {"password": OLD})

    assert status == 400
    assert await database.read(has_two_factor, person.id)
