"""The first start's steps, opened again later: they change what they ask for, and nothing else."""

from dataclasses import replace

import pytest

from appliance.actions.edit_tables import add_tables
from appliance.actions.edit_venue import edit_venue
from appliance.model.venue import fingerprint
from appliance.model.venue_list import parse_tables
from appliance.store.venue import get_venue, list_slots, list_tables
from tests.web.portal.people import a_person
from tests.web.portal.seating import value_of

VENUE = "/portal/setup/venue"


@pytest.fixture
async def owner(running):
    return await a_person(running)


async def change(environment, **changes):
    """The venue of that environment, otherwise."""

    def edit(tx):
        venue = get_venue(tx)
        edit_venue(tx, fingerprint(venue), replace(venue, **changes))
        return get_venue(tx)

    return await environment.database.write(edit)


async def save_unchanged(owner, **changes):
    """The form of the venue's step, sent as it was shown."""
    _, page, _ = await owner.get(VENUE)
    names = ("seen", "name", "slug", "time_zone", "currency")
    form = {name: value_of(page, name) for name in names}
    return await owner.post(
        VENUE, {**form, "reservation_mode": "free", "auto_confirm": "1", **changes}
    )


async def test_saving_the_venue_unchanged_changes_nothing(running, owner):
    place = {"address": "12 derb El Ferrane", "map_url": "https://maps.example/riad"}
    kept = await change(running.live, status="inactive", policies={"minimumAge": 18}, **place)

    status, _, _ = await save_unchanged(owner)

    assert status == 303
    assert await running.live.database.read(get_venue) == kept


async def test_a_test_environment_that_was_made_different_is_left_alone(running, owner):
    await change(running.live, address="12 derb El Ferrane")
    tried = await change(running.test, name="Tried out", policies={"dress": "none"})
    more = parse_tables("X9;Tried;2;4", frozenset()).tables
    await running.test.database.write(add_tables, more)
    slots = await running.test.database.read(list_slots)
    tables = await running.test.database.read(list_tables)

    assert (await save_unchanged(owner, name="Riad Atlas II"))[0] == 303
    add = {"tables": "T20, 2-4", "do": "add"}
    assert (await owner.post("/portal/setup/tables", add))[0] == 303
    slot = {"name": "Late", "start": "02:00", "end": "03:00", "days": "5"}
    assert (await owner.post("/portal/setup/slots", slot))[0] == 303

    assert (await running.live.database.read(get_venue)).name == "Riad Atlas II"
    assert await running.test.database.read(get_venue) == tried
    assert await running.test.database.read(list_tables) == tables
    assert await running.test.database.read(list_slots) == slots


async def test_a_test_environment_that_is_still_the_same_follows(running, owner):
    before = await running.live.database.read(get_venue)
    await change(running.test, **{
        name: getattr(before, name) for name in before.__slots__ if name != "id"
    })  # fmt: skip

    assert (await save_unchanged(owner, currency="eur"))[0] == 303
    assert (await owner.post("/portal/setup/tables", {"tables": "T20, 2-4", "do": "add"}))[0] == 303

    assert (await running.test.database.read(get_venue)).currency == "EUR"
    live, test = [
        [table.number for table in await environment.database.read(list_tables)]
        for environment in (running.live, running.test)
    ]
    assert "T20" in live
    assert live == test
