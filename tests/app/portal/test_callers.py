"""Known guests are suggested while staff fill in the form for a new reservation."""

import html
import json
import re

import pytest

from appliance.privacy import erase_guest
from tests.app.portal.people import a_person
from tests.app.portal.seating import seat

CALLERS = "/portal/reservations/callers"


async def offered(person, **typed):
    [(name, text)] = typed.items()
    status, page, _ = await person.send("GET", CALLERS, params={name: text})
    assert status == 200
    return [json.loads(html.unescape(found)) for found in re.findall(r"data-fill='([^']*)'", page)]


@pytest.mark.parametrize(
    ("typed", "is_offered"),
    [({"customer_name": "ida"}, False), ({"customer_name": "idr"}, True),
     ({"customer_name": "Sa"}, False), ({"customer_name": "SALMA i"}, True),
     ({"customer_name": "Terrasse"}, False), ({"customer_phone": "123"}, False),
     ({"customer_phone": "06001"}, True), ({"customer_phone": "3457"}, True),
     ({"customer_name": ""}, False)],
)  # fmt: skip
async def test_known_guests_are_suggested_from_the_third_letter_or_the_fourth_digit(
    running, host, typed, is_offered
):
    await seat(running)
    found = await offered(host, **typed)
    assert [each["customer_name"] for each in found] == ["Salma Idrissi"] * is_offered


async def test_a_frequent_guest_is_suggested_once_with_the_latest_name(running, host):
    await seat(running, date="2026-11-07", customer_name="Salma I.", access_code=None)
    running.clock.advance(60)
    await seat(running)
    assert [each["customer_name"] for each in await offered(host, customer_phone="3457")] == [
        "Salma Idrissi"
    ]


async def test_erased_guests_are_not_suggested_and_door_staff_get_no_suggestions(running, host):
    salma = await seat(running)
    door = await a_person(running, "door")
    assert (await door.get(f"{CALLERS}?customer_name=salma"))[0] == 403
    await running.live.database.write(erase_guest, salma.id, actor="box")
    assert await offered(host, customer_name="salma") == []
