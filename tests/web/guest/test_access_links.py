"""Links into a guest's page: how long they live, and what dead ones tell."""

import base64

import pytest


async def dead_links(world) -> list[str]:
    """Every way in which a link can be wrong, and one that has expired."""
    keyring, reservation = world.environment.keyring, await world.reserve(date="2026-11-20")
    good = keyring.access_token(reservation)
    raw = base64.urlsafe_b64decode(good)
    return [
        good,  # the day after the evening, past noon
        keyring.access_token("0192f0c1-0000-7000-8000-00000000dead"),
        keyring.claim_token(reservation),
        good[:-1],
        good + "A",
        base64.urlsafe_b64encode(raw[:-1] + bytes([raw[-1] ^ 1])).decode(),
        "x",
        "é",
        "%00",
        "..%2f..%2fetc",
        "",
        f"{good}/",
        f"{good}/card/of/another",
        "A" * 44,
        "A" * 4000,
        reservation,
    ]


@pytest.mark.proves("S11")
async def test_expired_unknown_and_malformed_links_get_the_same_friendly_page(world, guest):
    answers = [await guest.get(f"/access/{token}") for token in await dead_links(world)]
    pages = {(answer.status, await answer.read()) for answer in answers}
    headers = [{k: v for k, v in answer.headers.items() if k != "Date"} for answer in answers]

    assert len(pages) == 1
    assert all(one == headers[0] for one in headers)
    status, body = pages.pop()
    assert status == 404
    assert "Ce lien n’ouvre rien" in body.decode()


async def test_dead_claim_and_calendar_links_get_that_page_too(world, guest):
    dead = await (await guest.get("/access/x")).read()

    for path in ("/claim-guest/x", "/access/x/calendar.ics"):
        answer = await guest.get(path)
        assert (answer.status, await answer.read()) == (404, dead)


@pytest.mark.proves("decision: What are the links made of, and how long do they live?")
async def test_a_link_lives_until_noon_of_the_day_after_the_evening(world, guest):
    path = world.access(await world.reserve())

    world.clock.set("2026-11-22T11:59:59Z")
    before = (await guest.get(path)).status
    world.clock.set("2026-11-22T12:00:00Z")
    after = (await guest.get(path)).status

    assert (before, after) == (200, 404)


async def test_a_link_of_the_other_environment_opens_nothing(worlds, guest):
    live, test = worlds
    token = test.environment.keyring.access_token(await live.reserve())

    assert (await guest.get(f"/access/{token}")).status == 404
    assert (await guest.get(f"/test/access/{token}")).status == 404


async def test_the_dead_link_page_speaks_the_visitors_language(guest):
    answer = await guest.get("/access/x", headers={"Accept-Language": "ar"})

    assert answer.status == 404
    assert "هذا الرابط لا يفتح شيئًا" in await answer.text()


async def test_the_links_handed_on_are_those_of_the_public_address(world, guest):
    path = world.access(await world.reserve())

    html = await (await guest.get(path)).text()

    assert f'data-share="https://box.example{path}"' in html
    assert f'href="{path}/calendar.ics?lang=fr"' in html
    assert "mailto:?subject=" in html
