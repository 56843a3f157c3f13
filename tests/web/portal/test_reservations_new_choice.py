"""What the form of a new reservation chooses by itself, and what it leaves to whoever fills it."""

import re

import pytest

from tests.builders import TONIGHT, table_id
from tests.web.portal.people import a_person
from tests.web.portal.seating import rows, value_of

NEW = "/portal/reservations/new"
MONDAY = "2026-11-23"


@pytest.fixture
async def host(running):
    return await a_person(running, "host", "Yasmine")


@pytest.fixture
async def brunch(running):
    """Offered on Saturdays alone, and after it one past midnight that was added last but one."""

    def add(tx):
        tx.execute("UPDATE slot SET position = position + 2")
        for position, start, end in ((0, "01:00", "03:00"), (1, "12:00", "15:00")):
            tx.execute(
                """INSERT INTO slot (id, position, name, start, "end", days_of_week)
                   VALUES (:id, :position, :start, :start, :end, '[6]')""",
                {"id": tx.new_id(), "position": position, "start": start, "end": end},
            )

    await running.live.database.write(add)


def a_form(**changes):
    return {
        "token": "one-of-the-page",
        "date": TONIGHT,
        "slot": "12:00",
        "guests": "3",
        "table": table_id("T2"),
        "customer_name": "Karim Alaoui",
        **changes,
    }


def times(page):
    """The values of the hours in their order, and the chosen one."""
    select = re.search(r'<select id="new-slot".*?</select>', page, re.DOTALL)[0]
    values = re.findall(r'<option value="([^"]*)"', select)
    return values, re.findall(r'<option value="([^"]*)" selected', select)


async def test_an_hour_that_the_other_day_does_not_offer_never_becomes_the_whole_evening(
    running, host, brunch
):
    _, page, _ = await host.post(NEW, a_form(offer="1", date=MONDAY))

    assert times(page)[1] == [""]
    assert "12:00 is not offered on that day. Please choose a time." in page
    assert value_of(page, "wanted") == table_id("T2")
    status, page, _ = await host.post(NEW, a_form(date=MONDAY, slot=""))
    assert (status, "Please choose a time." in page) == (400, True)
    assert await rows(running, "SELECT 1 FROM reservation") == []


async def test_a_refused_hour_leaves_the_choice_open(running, host, brunch):
    status, page, _ = await host.post(NEW, a_form(date=MONDAY))

    assert (status, times(page)[1]) == (400, [""])
    assert "This time is not offered on that day." in page


async def test_the_table_is_chosen_again_with_the_next_hour(running, host, brunch):
    form = a_form(offer="1", date=MONDAY, slot="22:00", table="", wanted=table_id("T2"))

    _, page, _ = await host.post(NEW, form)

    assert f'<option value="{table_id("T2")}" selected>' in page


async def test_the_hours_stand_as_the_evening_goes(running, host, brunch):
    _, page, _ = await host.get(f"{NEW}?date={TONIGHT}")

    assert times(page)[0] == ["12:00", "19:30", "22:00", "01:00", "whole"]


@pytest.mark.parametrize(("least", "most", "party"), [(4, 8, "4"), (2, 4, "2"), (1, 1, "1")])
async def test_a_cell_of_the_board_opens_with_a_party_that_its_table_seats(
    running, host, least, most, party
):
    await running.live.database.write(
        lambda tx: tx.execute(
            """UPDATE venue_table SET capacity_min = :least, capacity_max = :most
               WHERE number = 'T3'""",
            {"least": least, "most": most},
        )
    )

    _, page, _ = await host.get(f"{NEW}?date={TONIGHT}&table={table_id('T3')}&slot=22:00")

    assert value_of(page, "guests") == party
    assert f'<option value="{table_id("T3")}" selected>' in page
