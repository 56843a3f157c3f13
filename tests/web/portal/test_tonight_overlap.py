"""Slots that share some time: a table that is taken in one is not offered in the other."""

import re

import pytest

from appliance.actions.edit_slots import add_slot
from appliance.model.venue_file import SlotEntry
from tests.builders import TONIGHT, table_id
from tests.web.portal.people import a_person
from tests.web.portal.seating import seat


@pytest.fixture
async def host(running):
    """Tonight's slots: 19:30 to 22:00, 21:00 to 23:30, and what there is from 22:00 on."""
    every_day = tuple(range(7))
    late = SlotEntry(name="Late", start="21:00", end="23:30", days_of_week=every_day)
    await running.live.database.write(add_slot, late)
    return await a_person(running, "host")


async def row_of(host, number):
    _, page, _ = await host.get("/portal/tonight")
    return re.search(rf'<tr id="t-{table_id(number)}".*?</tr>', page, re.DOTALL)[0]


def offered(row):
    return re.findall(r'class="free" href="[^"]*slot=([0-9:]+)"', row)


async def test_where_another_slot_runs_in_the_hours_are_said_and_nothing_is_offered(running, host):
    await seat(running, slot="19:30", starts=19 * 60 + 30, ends=22 * 60)

    row = await row_of(host, "T1")

    assert offered(row) == ["22:00"]
    assert 'taken <span dir="ltr">19:30–22:00</span>' in row
    assert offered(await row_of(host, "T2")) == ["19:30", "21:00", "22:00"]


async def test_what_is_offered_can_be_chosen_in_the_form(running, host):
    await seat(running, slot="19:30", starts=19 * 60 + 30, ends=22 * 60)
    for slot, is_offered in (("21:00", False), ("22:00", True)):
        query = f"date={TONIGHT}&slot={slot}&table={table_id('T1')}"

        _, page, _ = await host.get(f"/portal/reservations/new?{query}")

        assert (f'<option value="{table_id("T1")}"' in page) is is_offered


async def test_a_slot_that_is_offered_no_more_is_not_given_away(running, host):
    await seat(running, slot="18:00", starts=18 * 60, ends=19 * 60)

    assert "18:00" not in offered(await row_of(host, "T2"))
