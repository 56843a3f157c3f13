"""Helpers for tests of the venue's forms."""

from appliance.venue.model import list_slots, list_tables
from tests.app.portal.seating import value_of
from tests.builders import a_body, table_id
from tests.unit.arrivals import add_reservation

T1 = f"/portal/venue/tables/{table_id('T1')}"
NEXT_SATURDAY = "2026-11-28"


async def guest(running, **changes):
    return await running.live.database.write(add_reservation, **changes)


async def numbers(environment):
    return [table.number for table in await environment.database.read(list_tables)]


async def table_form(person, **changes):
    seen = value_of((await person.get(T1))[1], "seen")
    return {"seen": seen, "number": "T1", "name": "Terrasse 1", "capacity_min": "2",
            "capacity_max": "4", "minimum_spend": "500", "type": "standard", "bookable": "1",
            **changes}  # fmt: skip


async def slots_of(running):
    return {slot.start: slot for slot in await running.live.database.read(list_slots)}


async def create(running, **changes):
    return await running.call("POST", "/v1/reservations", json=a_body(**changes))
