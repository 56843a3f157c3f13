"""The days on which the venue is closed."""

import re

import pytest

from appliance.store.venue import list_closings
from tests.builders import TONIGHT, table_id
from tests.web.portal.people import a_person
from tests.web.portal.venue_forms import NEXT_SATURDAY, create, field

NEW = "/portal/reservations/new"


@pytest.mark.proves("decision: A closing day?")
async def test_a_closing_day_takes_no_booking_and_no_table_is_free(running):
    person = await a_person(running, "manager")
    status, _, _ = await person.post(
        "/portal/venue/closings", {"first": NEXT_SATURDAY, "reason": "Travaux"}
    )
    assert status == 303

    refused = await create(running, date=NEXT_SATURDAY)
    _, availability, _ = await running.call("GET", f"/v1/availability?date={NEXT_SATURDAY}")
    before = await create(running, date="2026-11-27", idempotencyKey="before")

    assert (refused[0], refused[1]["code"]) == (409, "VENUE_INACTIVE")
    assert refused[1]["field"] == "date"  # a venue that is off names no field
    assert {(t["available"], t["blockedBy"]) for t in availability["tables"]} == {(False, None)}
    assert before[0] == 201
    assert "Travaux" in (await person.get("/portal/venue/closings"))[1]


@pytest.mark.proves("decision: A closing day?")
async def test_who_is_expected_on_a_closing_day_is_shown_first_and_stays(running):
    person = await a_person(running, "manager")
    _, created, _ = await create(running, date=NEXT_SATURDAY)
    form = {"first": "2026-11-27", "last": "2026-11-30", "reason": ""}

    status, page, _ = await person.post("/portal/venue/closings", form)

    assert status == 409
    assert "the venue is closed that day" in page
    assert await running.live.database.read(list_closings) == []
    status, _, _ = await person.post(
        "/portal/venue/closings", {**form, "accepted": field(page, "accepted")}
    )
    assert status == 303
    listed = (await person.get("/portal/venue/closings"))[1]
    assert created["serviceReservationId"] in listed
    assert "1 reservation was made before: it stays" in listed
    replayed = await create(running, date=NEXT_SATURDAY)
    assert (replayed[0], replayed[1]) == (200, created)
    _, availability, _ = await running.call("GET", f"/v1/availability?date={NEXT_SATURDAY}")
    assert not any(table["available"] for table in availability["tables"])
    assert [table["blockedBy"] for table in availability["tables"]][:2] == ["partner", None]


async def test_days_that_are_opened_again_can_be_booked(running):
    person = await a_person(running, "manager")
    await person.post("/portal/venue/closings", {"first": TONIGHT})
    [closing] = await running.live.database.read(list_closings)

    status, _, _ = await person.post(f"/portal/venue/closings/{closing.id}/remove")

    assert status == 303
    assert (await create(running))[0] == 201


@pytest.mark.parametrize(
    "form",
    [
        {"first": ""}, {"first": "2026-02-30"}, {"first": "2026-11-20"},
        {"first": "2026-11-28", "last": "2026-11-27"},
        {"first": "2026-11-28", "last": "2099-01-01"},
    ],
)  # fmt: skip
async def test_a_period_that_cannot_be_is_refused(running, form):
    person = await a_person(running, "manager")

    assert (await person.post("/portal/venue/closings", form))[0] == 400
    assert await running.live.database.read(list_closings) == []


@pytest.mark.parametrize("role", ["door", "host", "owner"])
async def test_a_closed_evening_says_so_on_the_board_and_offers_no_cell(running, role):
    await close_days(running, NEXT_SATURDAY)
    person = await a_person(running, role)

    for path in ("/portal/tonight", "/portal/tonight/sheet"):
        _, closed, _ = await person.get(f"{path}?date={NEXT_SATURDAY}")
        _, opened, _ = await person.get(f"{path}?date={TONIGHT}")
        assert ("Travaux &lt;b&gt;" in closed, "Travaux" in opened) == (True, False)
        assert 'class="free"' not in closed
    _, rows, _ = await person.get(
        f"/portal/tonight/rows?date={NEXT_SATURDAY}&tables={table_id('T1')}"
    )
    assert (f"t-{table_id('T1')}" in rows, 'class="free"' in rows) == (True, False)


async def test_the_staff_form_says_that_a_day_is_closed_before_anything_is_sent(running):
    await close_days(running, NEXT_SATURDAY)
    host = await a_person(running, "host")

    _, page, _ = await host.get(f"{NEW}?date={NEXT_SATURDAY}&table={table_id('T1')}&slot=22:00")
    assert "Travaux &lt;b&gt;" in said(page)
    assert (
        table_id("T1") not in re.search(r'<select id="new-table".*?</select>', page, re.DOTALL)[0]
    )

    chosen = {"offer": "1", "date": TONIGHT, "slot": "22:00", "guests": "2"}
    assert said((await host.post(NEW, chosen))[1]) == ""
    assert "Travaux" in said((await host.post(NEW, chosen | {"date": NEXT_SATURDAY}))[1])


async def close_days(running, day):
    manager = await a_person(running, "manager")
    form = {"first": day, "reason": "Travaux <b>"}
    assert (await manager.post("/portal/venue/closings", form))[0] == 303


def said(page):
    return re.search(r'<div id="slot-said" role="status">(.*?)</div>', page, re.DOTALL)[1]
