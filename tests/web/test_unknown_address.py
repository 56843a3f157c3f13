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
