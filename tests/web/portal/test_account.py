import argon2
import pytest

from appliance.actions.sign_in import start_session
from appliance.store.sessions import list_sessions
from appliance.store.staff import set_password
from tests.web.portal.people import Person, a_person

OLD, NEW = "le thé est servi à minuit", "une menthe fraîche au matin"
HASH = argon2.PasswordHasher(memory_cost=64, parallelism=1, time_cost=1).hash(OLD)


async def another_browser(running, person) -> Person:
    session = await running.live.database.write(start_session, person.id, None, "Safari, iPhone")
    return Person(person.id, running, session)


@pytest.mark.proves("V7")
async def test_another_browser_is_signed_out_from_here(running):
    here = await a_person(running, "door")
    there = await another_browser(running, here)
    sessions = await running.live.database.read(list_sessions, here.id)
    [other] = [s for s in sessions if s.device == "Safari, iPhone"]
    assert "Safari, iPhone" in (await here.get("/portal/account"))[1]

    status, _, _ = await here.post(f"/portal/account/sessions/{other.id}/end")

    assert status == 303
    assert (await there.get("/portal"))[2]["Location"].startswith("/portal/sign-in")
    assert (await here.get("/portal/account"))[0] == 200


@pytest.mark.proves("V7")
async def test_everywhere_else_leaves_this_browser_alone(running):
    here = await a_person(running, "door")
    there = await another_browser(running, here)

    await here.post("/portal/account/sessions/end-others")

    assert (await there.get("/portal"))[2]["Location"].startswith("/portal/sign-in")
    assert (await here.get("/portal/account"))[0] == 200


async def test_nobody_ends_the_session_of_somebody_else(running):
    mallory, victim = await a_person(running, "owner"), await a_person(running, "door")
    [session] = await running.live.database.read(list_sessions, victim.id)

    assert (await mallory.post(f"/portal/account/sessions/{session.id}/end"))[0] == 404

    assert (await victim.get("/portal/account"))[0] == 200


@pytest.mark.proves("V6", "V7")
async def test_another_password_needs_the_present_one_and_ends_every_session(running):
    here = await a_person(running, "door")
    await running.live.database.write(set_password, here.id, HASH)
    there = await another_browser(running, here)

    wrong = await here.post("/portal/account/password", {"password": "wrong", "new": NEW})
    weak = await here.post("/portal/account/password", {"password": OLD, "new": "azerty123"})
    assert (wrong[0], weak[0]) == (400, 400)
    status, _, headers = await here.post("/portal/account/password", {"password": OLD, "new": NEW})

    assert (status, headers["Location"]) == (303, "/portal/sign-in?note=password-changed")
    for browser in (here, there):
        assert (await browser.get("/portal"))[2]["Location"].startswith("/portal/sign-in")


async def test_the_present_password_cannot_be_guessed_at_an_open_browser(running):
    here = await a_person(running, "door")
    await running.live.database.write(set_password, here.id, HASH)
    for _ in range(5):
        await here.post("/portal/account/password", {"password": "wrong", "new": NEW})

    status, text, _ = await here.post("/portal/account/password", {"password": OLD, "new": NEW})

    assert status == 429
    assert "Too many wrong passwords" in text
