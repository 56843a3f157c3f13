"""The rules of the venue, its address and its policies."""

import pytest

from appliance.store.venue import get_venue
from tests.web.portal.people import a_person
from tests.web.portal.venue_forms import NEXT_SATURDAY, create, field

RULES = {"name": "Riad Atlas", "slug": "riad-atlas", "status": "active",
         "reservation_mode": "free", "auto_confirm": "1", "request_expiry_hours": "24",
         "currency": "MAD", "time_zone": "Africa/Casablanca",
         "evening_ends_at": "06:00"}  # fmt: skip


async def rules_form(person, **changes):
    seen = field((await person.get("/portal/venue/rules"))[1], "seen")
    return {**RULES, "seen": seen, **changes}


async def test_the_rules_are_saved_and_partners_read_them(running):
    person = await a_person(running, "manager")
    form = await rules_form(
        person, name="Riad Toubkal", status="inactive", reservation_mode="prepaid",
        auto_confirm="", request_expiry_hours="48", currency="EUR",
    )  # fmt: skip

    assert (await person.post("/portal/venue/rules", form))[0] == 303

    _, found, _ = await running.call("GET", "/v1/venue")
    assert (found["venue"]["name"], found["venue"]["status"]) == ("Riad Toubkal", "inactive")
    assert (found["reservationMode"], found["autoConfirm"]) == ("prepaid", False)
    assert (found["requestExpiryHours"], found["currency"]) == (48, "EUR")
    assert (await create(running))[1]["code"] == "VENUE_INACTIVE"
    assert (await person.post("/portal/venue/rules", form))[0] == 409


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""}, {"slug": "Riad Atlas"}, {"status": "asleep"}, {"reservation_mode": "x"},
        {"request_expiry_hours": "0"}, {"currency": "mad"}, {"evening_ends_at": "13:00"},
        {"time_zone": "Mars/Base"}, {"time_zone": "../../etc/passwd"}, {"time_zone": ""},
        {"time_zone": "Africa"}, {"evening_ends_at": "6"},
        {"map_url": "javascript:alert(1)"}, {"map_url": "http://maps.example/riad"},
        {"address": "a" * 201},
    ],
)  # fmt: skip
async def test_rules_that_cannot_be_are_refused(running, changes):
    person = await a_person(running, "manager")
    before = await running.live.database.read(get_venue)

    status, _, _ = await person.post("/portal/venue/rules", await rules_form(person, **changes))

    assert status == 400
    assert await running.live.database.read(get_venue) == before


async def test_the_address_and_the_map_are_saved_and_an_empty_field_forgets_them(running):
    person = await a_person(running, "manager")
    place = {"address": "12, derb Dabachi, Marrakech", "map_url": "https://maps.example/riad"}

    status, _, _ = await person.post("/portal/venue/rules", await rules_form(person, **place))

    assert status == 303
    venue = await running.live.database.read(get_venue)
    assert (venue.address, venue.map_url) == (place["address"], place["map_url"])
    _, page, _ = await person.get("/portal/venue/rules")
    assert place["address"] in page
    assert place["map_url"] in page
    await person.post("/portal/venue/rules", await rules_form(person))
    venue = await running.live.database.read(get_venue)
    assert (venue.address, venue.map_url) == (None, None)


@pytest.mark.proves("decision: Tables, slots or rules that change under reservations?")
async def test_the_evening_does_not_end_across_a_slot_that_somebody_holds(running):
    person = await a_person(running, "manager")
    await person.post("/portal/venue/slots", [("start", "02:00"), ("end", "04:00"), ("days", "6")])
    assert (await create(running, slot="02:00", date=NEXT_SATURDAY))[0] == 201

    status, page, _ = await person.post(
        "/portal/venue/rules", await rules_form(person, evening_ends_at="01:00")
    )

    assert status == 409
    assert "move across midnight" in page
    taken = await create(running, slot="02:00", date=NEXT_SATURDAY, idempotencyKey="b")
    assert taken[1]["code"] == "TABLE_TAKEN"


async def test_policies_are_saved_with_pairs_of_the_houses_own(running):
    person = await a_person(running, "manager")
    form = await rules_form(
        person, cancellation="24 h avant.", lateArrivalMinutes="20", minimumAge="", dressCode="",
        others="parking: voiturier\nterrace: true\nopen: 1e999\nhours: [18, 23]",
    )  # fmt: skip

    assert (await person.post("/portal/venue/policies", form))[0] == 303

    _, found, _ = await running.call("GET", "/v1/venue")
    assert found["policies"] == {
        "cancellation": "24 h avant.", "lateArrivalMinutes": 20, "parking": "voiturier",
        "terrace": True, "open": "1e999", "hours": [18, 23],
    }  # fmt: skip
    page = (await person.get("/portal/venue/rules"))[1]
    assert "terrace: true" in page
    assert "hours: [18, 23]" in page
    empty = await rules_form(person)
    await person.post("/portal/venue/policies", empty)
    assert (await running.call("GET", "/v1/venue"))[1]["policies"] is None


@pytest.mark.parametrize("others", ["no colon", "a: 1\na: 2", ": x", "minimumAge: 3"])
async def test_a_pair_that_is_none_is_refused(running, others):
    person = await a_person(running, "manager")

    form = await rules_form(person, others=others)

    assert (await person.post("/portal/venue/policies", form))[0] == 400
