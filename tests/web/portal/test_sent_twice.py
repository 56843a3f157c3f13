"""Forms that somebody sends twice while the box is slow: one deed, and both are answered alike."""

import asyncio
import re

import pytest

from tests.web.portal.people import a_person
from tests.web.portal.seating import rows

LINK = r"https://box\.example/portal/welcome#[\w-]{43}"
CLOSINGS, SLOTS = "/portal/venue/closings", "/portal/venue/slots"


@pytest.fixture
async def owner(running):
    return await a_person(running)


async def twice(person, path, form):
    return await asyncio.gather(person.post(path, form), person.post(path, form))


async def token_on(person, path, action):
    """The hidden token of the form with that action."""
    _, page, _ = await person.get(path)
    form = re.search(rf'<form method="post" action="{action}".*?</form>', page, re.DOTALL)[0]
    return re.search(r'name="once" value="([\w-]{43})"', form)[1]


async def test_an_invitation_is_made_once_and_its_link_is_shown_to_both(running, owner):
    once = await token_on(owner, "/portal/people", "/portal/people")

    answers = await twice(owner, "/portal/people", {"once": once, "name": "Karim", "role": "host"})

    assert [status for status, _, _ in answers] == [200, 200]
    assert len({re.search(LINK, page)[0] for _, page, _ in answers}) == 1
    assert await rows(running, "SELECT count(*) FROM staff WHERE name = 'Karim'") == [(1,)]


async def test_the_link_is_shown_to_nobody_else_and_not_two_minutes_later(running, owner):
    form = {"once": "of the page", "name": "Karim", "role": "host"}
    await owner.post("/portal/people", form)
    other = await a_person(running, name="Omar")

    assert (await other.post("/portal/people", form))[0] == 409  # a form of their own
    running.clock.advance(121)
    status, page, _ = await owner.post("/portal/people", form)

    assert status == 200
    assert re.search(LINK, page) is None


async def test_a_link_for_a_new_password_stays_the_one_that_is_shown(running, owner):
    host = await a_person(running, "host")
    path = f"/portal/people/{host.id}/link"
    once = await token_on(owner, "/portal/people", path)

    answers = await twice(owner, path, {"once": once})

    assert len({re.search(LINK, page)[0] for _, page, _ in answers}) == 1


async def test_a_refused_invitation_may_be_sent_again(running, owner):
    form = {"once": "of the page", "name": "Karim", "role": "host"}
    await a_person(running, "host", "Karim")

    assert (await owner.post("/portal/people", form))[0] == 409
    assert (await owner.post("/portal/people", {**form, "name": "Omar"}))[0] == 200


async def test_one_terminal_is_made_and_its_token_is_shown_to_both(running, owner):
    once = await token_on(owner, "/portal/door", "/portal/door/issue")

    answers = await twice(
        owner, "/portal/door/issue", {"once": once, "name": "Turnstile", "role": "scan"}
    )

    tokens = {re.search(r'<code id="token"[^>]*>([^<]+)<', page)[1] for _, page, _ in answers}
    assert len(tokens) == 1
    assert await rows(running, "SELECT count(*) FROM terminal WHERE name = 'Turnstile'") == [(1,)]


async def test_a_slot_that_is_added_twice_is_added(running, owner):
    once = await token_on(owner, SLOTS, SLOTS)
    form = {"once": once, "name": "Late", "start": "02:00", "end": "03:00", "days": "5"}

    answers = await twice(owner, SLOTS, form)

    assert {status for status, _, _ in answers} == {303}
    assert await rows(running, "SELECT count(*) FROM slot WHERE name = 'Late'") == [(1,)]


async def test_days_that_are_closed_twice_are_open_when_they_are_opened_once(running, owner):
    form = {"first": "2026-12-24", "last": "2026-12-26", "reason": "Fête"}

    answers = await twice(owner, CLOSINGS, form)

    assert {status for status, _, _ in answers} == {303}
    [(id_,)] = await rows(running, "SELECT id FROM closing_day")
    once = await token_on(owner, CLOSINGS, f"{CLOSINGS}/{id_}/remove")
    answers = await twice(owner, f"{CLOSINGS}/{id_}/remove", {"once": once})
    assert {status for status, _, _ in answers} == {303}
    assert await rows(running, "SELECT 1 FROM closing_day") == []


async def test_other_days_and_another_reason_are_another_closing(running, owner):
    for change in ({}, {"reason": "Travaux"}, {"last": "2026-12-25"}):
        await owner.post(CLOSINGS, {"first": "2026-12-24", "last": "2026-12-24", **change})

    assert await rows(running, "SELECT count(*) FROM closing_day") == [(3,)]
