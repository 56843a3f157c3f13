"""Errors: an HTML page for browsers, the documented answer for API clients."""

import logging

import pytest
from aiohttp import web

from appliance.core.errors import Unavailable
from tests.app.portal.people import a_person
from web.error_pages import error_page
from web.middleware import add_checks

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Language": "en"}


@pytest.mark.parametrize(
    "path", ["/nowhere", "/test/nowhere", "/portal/nowhere", "/test/portal/x", "/accesss/abc"]
)
async def test_a_visitors_browser_gets_the_page_for_invalid_links(running, path):
    async with running.client.get(path, headers=BROWSER) as answer:
        assert (answer.status, answer.content_type) == (404, "text/html")


@pytest.mark.parametrize("path", ["/portal/nowhere", "/test/portal/reservations/new/x"])
async def test_a_signed_in_person_gets_errors_within_the_portal(running, path):
    host = await a_person(running, "host", "Yasmine")
    status, page, headers = await host.get(path, **BROWSER)
    assert (status, headers["Cache-Control"]) == (404, "no-store")
    assert "Yasmine" in page
    assert f'href="{"/test" if path.startswith("/test") else ""}/portal/tonight"' in page


@pytest.mark.parametrize("path", ["/v1/nowhere", "/test/v1/nowhere", "/terminal/nowhere", "/v1"])
async def test_the_interfaces_return_json_errors_even_to_a_browser(running, path):
    async with running.client.get(path, headers=BROWSER) as answer:
        assert (answer.status, (await answer.json())["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("path", "above"),
    [
        ("/portal/box/clock", "/portal/box"),
        ("/portal/venue/order", "/portal/venue"),
        ("/portal/sign-out", "/portal"),
        ("/me/abc/erasure", "/me/abc"),
        ("/me/a%3Fb%23c/erasure", "/me/a%3Fb%23c"),
        ("/me/a%0D%0AX-Y:%20b/erasure", "/me/a%0D%0AX-Y:%20b"),  # no header injection
    ],
)
async def test_opening_the_address_of_a_form_redirects_to_its_page(running, path, above):
    async with running.client.get(path, headers=BROWSER, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, above)
    async with running.client.get(path, headers={"Accept": "*/*"}) as answer:
        assert (answer.status, (await answer.json())["code"]) == (405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize("path", ["/book", "/portal/sign-in"])
async def test_a_guest_gets_a_page_while_the_box_is_unavailable(running, monkeypatch, path):
    async def read(*_given, **_named):
        raise Unavailable

    monkeypatch.setattr(running.live.database, "read", read)
    async with running.client.get(path, headers=BROWSER) as answer:
        assert (answer.status, answer.content_type) == (503, "text/html")
        assert "Retry-After" in answer.headers


WRITTEN = "salma@example.com"


@pytest.fixture
def broken(running, monkeypatch):
    """A box on which every database read raises an unexpected exception."""

    async def fail(*_arguments, **_keywords):
        raise ValueError(WRITTEN)

    monkeypatch.setattr(running.box.live.database, "read", fail)
    return running


async def test_a_signed_in_person_gets_internal_errors_within_the_portal(broken, caplog):
    owner = await a_person(broken, "owner", "Yasmine")

    with caplog.at_level(logging.ERROR):
        status, page, _ = await owner.get("/portal/tonight", **BROWSER)

    assert status == 500
    assert "Yasmine" in page
    assert WRITTEN not in page + caplog.text
    said = [one.getMessage() for one in caplog.records if one.name == "appliance.core.errors"]
    assert len([each for each in said if each.startswith("GET /portal/tonight failed")]) == 1


async def test_the_text_of_an_exception_is_neither_answered_nor_logged(aiohttp_client, box, caplog):
    async def fail(_request: web.Request) -> web.Response:
        raise ValueError("salma", "@", "example.com")

    app = web.Application()
    add_checks(app, box, 0, error_page)
    app.router.add_get("/access/{token}", fail)
    client = await aiohttp_client(app)

    with caplog.at_level(logging.DEBUG):
        async with client.get("/access/secret") as response:
            body = await response.text()

    assert response.status == 500
    [record] = [r for r in caplog.records if r.name == "appliance.core.errors"]
    noted = logging.Formatter().format(record)
    assert "GET /access/{token} failed: ValueError" in noted
    assert "test_refusal_pages.py" in noted
    assert "'salma', '@'" not in noted + body
    assert "secret" not in noted
