"""An accident in the box: a page for people, the documented answer for programs."""

import logging

import pytest

from tests.web.portal.people import a_person

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Language": "en"}
WRITTEN = "salma@example.com"


@pytest.fixture
def broken(running, monkeypatch):
    """A box whose every look into the evening ends in an accident."""

    async def fail(*_arguments, **_keywords):
        raise ValueError(WRITTEN)

    monkeypatch.setattr(running.box.live.database, "read", fail)
    return running


async def test_somebody_of_the_house_stays_in_the_portal(broken, caplog):
    owner = await a_person(broken, "owner", "Yasmine")

    with caplog.at_level(logging.ERROR):
        status, page, _ = await owner.get("/portal/tonight", **BROWSER)

    assert status == 500
    assert "Internal error: nothing was recorded." in page
    assert "Yasmine" in page
    assert WRITTEN not in page + caplog.text
    said = [one.getMessage() for one in caplog.records if one.name == "appliance.accidents"]
    assert len([each for each in said if each.startswith("GET /portal/tonight failed")]) == 1


async def test_a_guest_hears_that_it_was_not_them(broken):
    async with broken.client.get("/book", headers=BROWSER) as answer:
        page = await answer.text()

    assert (answer.status, answer.content_type) == (500, "text/html")
    assert "That went wrong here" in page


async def test_a_program_gets_what_is_documented(broken):
    async with broken.client.get("/book", headers={"Accept": "*/*"}) as answer:
        assert (answer.status, (await answer.json())["code"]) == (500, "INTERNAL_ERROR")
