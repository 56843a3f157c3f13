"""The board marks the slot that is on or comes next, tonight and on no other evening."""

import re

import pytest

from tests.web.portal.people import a_person


async def present(host, query=""):
    status, page, _ = await host.get(f"/portal/tonight{query}")
    assert status == 200
    return re.findall(r'<th scope="col" aria-current="time"><span dir="ltr">([\d:]{5})', page)


@pytest.mark.parametrize(
    ("now", "slot"),
    [
        ("2026-11-22T12:30:00Z", "12:00"),  # a Sunday: brunch is on
        ("2026-11-21T19:00:00Z", "19:30"),  # between two slots
        ("2026-11-21T22:10:00Z", "22:00"),
        ("2026-11-22T00:30:00Z", "22:00"),  # after midnight it is still the same evening
        ("2026-11-22T03:00:00Z", "22:00"),  # all are over, the evening is not
    ],
)
async def test_the_slot_that_is_on_or_comes_next_is_marked(running, clock, now, slot):
    clock.set(now)

    assert await present(await a_person(running, "host")) == [slot]


async def test_another_evening_has_none(running):
    assert await present(await a_person(running, "host"), "?date=2026-11-28") == []
