from appliance.store.venue import list_slots, list_tables
from tests.web.portal.people import a_person
from tests.web.portal.venue_forms import NEXT_SATURDAY, T1, table_form


async def test_the_test_environment_takes_the_tables_and_slots_of_live(running):
    person = await a_person(running, "manager")
    await person.post("/portal/venue/tables", {"list": "V1;Salon;4;8;vip"})
    await person.post("/test/portal/venue/tables", {"list": "X1"})
    await person.post("/portal/venue/slots", [("start", "15:00"), ("end", "17:00"), ("days", "2")])

    status, _, _ = await person.post("/test/portal/venue/copy-live")

    assert status == 303
    copied = {t.number: t.bookable for t in await running.test.database.read(list_tables)}
    assert copied["V1"] is True
    assert copied["X1"] is False
    assert "15:00" in {slot.start for slot in await running.test.database.read(list_slots)}
    assert (await person.post("/portal/venue/copy-live"))[0] == 404


async def test_markup_in_a_name_is_shown_as_text(running):
    person = await a_person(running, "manager")
    evil = "<script>alert(1)</script>"
    await person.post(T1, await table_form(person, name=evil, type=evil[:40]))
    await person.post("/portal/venue/closings", {"first": NEXT_SATURDAY, "reason": evil})

    for path in ("/portal/venue", T1, "/portal/venue/closings"):
        page = (await person.get(path))[1]
        assert evil not in page
        assert "&lt;script&gt;" in page
