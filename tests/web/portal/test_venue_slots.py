"""The hours that the venue offers."""

import pytest

from appliance.actions.edit_tables import edit_table
from appliance.model.venue import fingerprint
from appliance.model.venue_list import parse_tables
from appliance.store.venue import get_table
from tests.builders import table_id
from tests.web.portal.people import a_person
from tests.web.portal.venue_forms import NEXT_SATURDAY, create, field, guest, slots_of


async def test_a_slot_is_added_and_can_be_booked(running):
    person = await a_person(running, "manager")
    status, _, _ = await person.post(
        "/portal/venue/slots",
        [("name", "After"), ("start", "01:00"), ("end", "04:00"), ("days", "6"), ("days", "5")],
    )

    assert status == 303
    assert (await slots_of(running))["01:00"].days_of_week == (5, 6)
    assert (await create(running, slot="01:00"))[0] == 201


@pytest.mark.parametrize(
    "form",
    [
        [("start", "19:30"), ("end", "21:00"), ("days", "6")],
        [("start", "25:00"), ("end", "21:00"), ("days", "6")],
        [("start", "18:00"), ("end", ""), ("days", "6")],
        [("start", "18:00"), ("end", "19:00")],
        [("start", "18:00"), ("end", "19:00"), ("days", "7")],
    ],
)
async def test_a_slot_that_cannot_be_is_refused(running, form):
    person = await a_person(running, "manager")

    assert (await person.post("/portal/venue/slots", form))[0] == 400
    assert len(await slots_of(running)) == 3


async def test_slots_that_share_time_are_allowed_and_warned_of(running):
    person = await a_person(running, "manager")
    assert "share some time" not in (await person.get("/portal/venue/slots"))[1]

    await person.post(
        "/portal/venue/slots",
        [("name", "Tard"), ("start", "21:00"), ("end", "23:00"), ("days", "6")],
    )

    page = (await person.get("/portal/venue/slots"))[1]
    assert "“Dîner” and “Tard” share some time" in page
    assert "“Tard” and “Soirée” share some time" in page


@pytest.mark.proves("decision: Tables, slots or rules that change under reservations?")
@pytest.mark.parametrize("how", ["weekday", "start", "removed"])
async def test_reservations_whose_slot_goes_are_shown_first_and_keep_their_time(running, how):
    person = await a_person(running, "manager")
    coming = await guest(running, slot="19:30", date=NEXT_SATURDAY)
    slot = (await slots_of(running))["19:30"]
    path = f"/portal/venue/slots/{slot.id}"
    days = [("days", str(day)) for day in range(6 if how == "weekday" else 7)]
    start = "20:00" if how == "start" else "19:30"
    form = [("seen", fingerprint(slot)), ("name", "Dîner"), ("start", start), ("end", "22:00"),
            *days]  # fmt: skip
    path += "/remove" if how == "removed" else ""

    status, page, _ = await person.post(path, form)

    assert status == 409
    assert "the slot is not offered on that day" in page
    assert f"/portal/reservations/{coming.id}" in page
    assert (await slots_of(running))["19:30"] == slot
    status, _, _ = await person.post(path, [*form, ("accepted", field(page, "accepted"))])
    assert status == 303
    kept = await running.live.database.read(
        lambda reader: reader.row("SELECT slot, starts, ends, status FROM reservation")
    )
    assert kept == ("19:30", coming.starts, coming.ends, "confirmed")


async def test_a_slot_edit_of_another_time_is_refused(running):
    person = await a_person(running, "manager")
    slot = (await slots_of(running))["19:30"]
    form = [("seen", "0" * 32), ("start", "19:30"), ("end", "23:00"), ("days", "6")]

    assert (await person.post(f"/portal/venue/slots/{slot.id}", form))[0] == 409
    assert (await person.post(f"/portal/venue/slots/{slot.id}/remove", form))[0] == 409


async def test_a_change_of_a_day_gone_by_concerns_nobody(running):
    await guest(running, guests=4, date="2026-11-20")
    table = await running.live.database.read(get_table, table_id("T1"))
    entry = parse_tables("Z1;Terrasse;1;2").tables[0]

    clashes = await running.live.database.write(edit_table, table.id, fingerprint(table), entry)

    assert clashes == ()
