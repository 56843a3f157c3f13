"""After a form was refused, everything on the page leads to pages: none answers 405."""

import html
import re
from urllib.parse import unquote

import pytest

from tests.web.portal.people import a_person
from tests.web.portal.seating import path_of, seat
from tests.web.test_principals import a_path
from web.portal.routes import PORTAL_ROUTES

ENDS_THE_SESSION = {"/portal/sign-out", "/portal/account/password"}


def way_back(page):
    """Where the switch of languages leads back to; None where the answer has no frame."""
    found = re.search(r'action="/portal/language\?next=([^"]*)"', page)
    return found and unquote(html.unescape(found[1]))


@pytest.mark.parametrize("environment", ["", "/test"])
async def test_the_switch_of_languages_leads_to_a_page_after_every_refused_form(
    running, environment
):
    person = await a_person(running, "owner")
    met = 0
    for route in PORTAL_ROUTES:
        if route.method == "GET" or route.path in ENDS_THE_SESSION:
            continue
        if environment and route.of_the_house:
            continue
        _, page, _ = await person.post(environment + a_path(route.path))
        back = way_back(page)
        if back is None:
            continue
        met += 1
        status, _, _ = await person.get(back)
        assert status != 405, (route.path, back)
        assert back.startswith(f"{environment}/portal"), (route.path, back)
    assert met > 20


async def test_it_leads_back_to_the_very_thing_that_the_form_was_about(running):
    host = await a_person(running, "host")
    salma = await seat(running)

    _, page, _ = await host.post(path_of(salma, "amend"), {"seen": "0"})

    assert way_back(page) == path_of(salma)


async def test_who_was_signed_out_meanwhile_comes_back_to_a_page(running):
    salma = await seat(running)
    async with running.client.post(
        path_of(salma, "amend"), data={"seen": "1"}, allow_redirects=False,
        headers={"Sec-Fetch-Site": "same-origin"},
    ) as response:  # fmt: skip
        assert response.status == 303
        assert response.headers["Location"] == f"/portal/sign-in?next={path_of(salma)}"


async def test_the_ribbon_of_the_test_environment_speaks_of_the_portal(running):
    host = await a_person(running, "host")

    _, test, _ = await host.get("/test/portal/tonight")
    _, live, _ = await host.get("/portal/tonight")

    assert "Test environment: nothing here is real" in test
    assert "this reservation is not real" not in test
    assert "nothing here is real" not in live
