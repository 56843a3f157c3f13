"""Addresses that lead nowhere: a page for people, the documented answer for programs."""

import pytest

from tests.web.portal.people import a_person

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Language": "en"}


@pytest.mark.parametrize(
    "path", ["/nowhere", "/test/nowhere", "/portal/nowhere", "/test/portal/x", "/accesss/abc"]
)
async def test_a_stranger_in_a_browser_gets_the_page_of_a_dead_link(running, path):
    async with running.client.get(path, headers=BROWSER) as answer:
        assert (answer.status, answer.content_type) == (404, "text/html")
        assert "This link opens nothing" in await answer.text()


@pytest.mark.parametrize("path", ["/portal/nowhere", "/test/portal/reservations/new/x"])
async def test_somebody_of_the_house_stays_in_the_portal(running, path):
    host = await a_person(running, "host", "Yasmine")

    status, page, headers = await host.get(path, **BROWSER)

    assert (status, headers["Cache-Control"]) == (404, "no-store")
    assert "No such page" in page
    assert "Yasmine" in page
    assert f'href="{"/test" if path.startswith("/test") else ""}/portal/tonight"' in page


@pytest.mark.parametrize("path", ["/v1/nowhere", "/test/v1/nowhere", "/terminal/nowhere", "/v1"])
async def test_the_interfaces_answer_as_documented_even_in_a_browser(running, path):
    async with running.client.get(path, headers=BROWSER) as answer:
        assert (answer.status, (await answer.json())["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_whoever_asks_for_no_page_gets_none(running, method):
    headers = {"Accept": "*/*"} if method == "GET" else BROWSER

    async with running.client.request(method, "/nowhere", headers=headers) as answer:
        assert (answer.status, answer.content_type) == (404, "application/json")


@pytest.mark.parametrize(
    ("path", "above"),
    [
        ("/portal/box/restart", "/portal/box"),
        ("/test/portal/venue/order", "/test/portal/venue"),
        ("/portal/sign-out", "/portal"),
        ("/me/abc/erasure", "/me/abc"),
        ("/me/a%3Fb%23c/erasure", "/me/a%3Fb%23c"),
        ("/me/a%0D%0AX-Y:%20b/erasure", "/me/a%0D%0AX-Y:%20b"),  # no header of a stranger's
    ],
)
async def test_the_address_of_a_form_opened_again_leads_to_its_page(running, path, above):
    async with running.client.get(path, headers=BROWSER, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, above)
    async with running.client.get(path, headers={"Accept": "*/*"}) as answer:
        assert (answer.status, (await answer.json())["code"]) == (405, "METHOD_NOT_ALLOWED")


async def test_what_is_gone_is_no_form_that_was_refused(running):
    owner = await a_person(running, "owner")

    status, page, _ = await owner.get("/portal/reservations/of-nobody", **BROWSER)

    assert status == 404
    assert "No such page" in page
    assert "what you typed" not in page


async def test_a_page_that_somebody_may_not_see_speaks_of_no_form(running):
    host = await a_person(running, "host")

    status, page, _ = await host.get("/portal/venue", **BROWSER)

    assert status == 403
    assert "This page cannot be shown" in page
    assert "what you typed" not in page
