"""What could not be done just now, or was too large, in a browser: a page, and no JSON."""

import pytest

from appliance.errors import Unavailable
from tests.web.portal.people import a_person

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Language": "en"}
TOO_LARGE = {"reason": "x" * 70_000}
SAID = "This is more than the box takes at once (64 KiB)"


def takes_nothing(running, monkeypatch):
    async def read(*_given, **_named):
        raise Unavailable

    monkeypatch.setattr(running.live.database, "read", read)


@pytest.mark.parametrize("path", ["/book", "/portal/sign-in"])
async def test_a_guest_whom_the_box_cannot_serve_just_now_gets_a_page(running, monkeypatch, path):
    takes_nothing(running, monkeypatch)

    async with running.client.get(path, headers=BROWSER) as answer:
        assert (answer.status, answer.content_type) == (503, "text/html")
        assert "Retry-After" in answer.headers
        assert "your name is enough" in await answer.text()


async def test_a_box_that_is_stopping_shows_its_house_a_page_too(running, monkeypatch):
    host = await a_person(running, "host")

    def look_up(*_given, **_named):
        raise Unavailable

    takes_nothing(running, monkeypatch)
    monkeypatch.setattr(running.live.database, "look_up", look_up)
    status, page, headers = await host.get("/portal/tonight", **BROWSER)

    assert (status, headers["Content-Type"]) == (503, "text/html; charset=utf-8")
    assert "please go back and try again" in page


async def test_a_stranger_who_sends_too_much_gets_a_page(running):
    path, headers = "/portal/sign-in", {**BROWSER, "Sec-Fetch-Site": "same-origin"}

    async with running.client.post(path, data=TOO_LARGE, headers=headers) as answer:
        assert (answer.status, answer.content_type) == (413, "text/html")
        assert SAID in await answer.text()


@pytest.mark.parametrize("headers", [BROWSER, {**BROWSER, "HX-Request": "true"}])
async def test_a_list_that_is_too_long_is_refused_on_a_page_of_the_portal(running, headers):
    manager = await a_person(running, "manager", "Yasmine")

    status, page, _ = await manager.post("/portal/venue/preview", TOO_LARGE, **headers)

    assert status == 413
    assert SAID in page
    assert ("Yasmine" in page) == ("HX-Request" not in headers)


@pytest.mark.parametrize("path", ["/v1/reservations", "/test/v1/reservations"])
async def test_programs_are_answered_as_documented_even_so(running, path):
    status, body, _ = await running.call("POST", path, data=b" " * 70_000, headers=BROWSER)

    assert (status, body["code"]) == (413, "BODY_TOO_LARGE")
