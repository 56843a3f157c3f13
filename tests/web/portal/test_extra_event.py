"""A check-in that was taken back: beyond the contract's six events, ticked in the portal alone."""

import re

import pytest

from tests.conftest import Running, with_settings
from tests.web.portal.integrations import ROOM, register
from tests.web.portal.people import a_person

EXTRA = "reservation.checkin_reverted"
TICK = re.compile(r'<input type="checkbox" name="event" value="([a-z_.]+)" (checked)?>')


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "clock_grace_minutes": 0})


async def test_the_form_offers_it_unticked_beside_the_six(running: Running):
    person = await a_person(running, "manager")

    _, form, _ = await person.get(f"{ROOM}/endpoints/new")

    ticks = dict(TICK.findall(form))
    assert len(ticks) == 7
    assert [name for name, checked in ticks.items() if not checked] == [EXTRA]


async def test_an_endpoint_that_was_given_it_is_listed_with_it(running: Running):
    person = await a_person(running, "manager")

    await register(person, "https://127.0.0.1:9009/hook", "reservation.checked_in", EXTRA)

    _, listed, _ = await running.call("GET", "/test/v1/webhooks")
    assert [item["events"] for item in listed["items"]] == [["reservation.checked_in", EXTRA]]
    assert EXTRA not in listed["events"]
