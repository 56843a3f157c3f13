"""A guest's data in the portal: who asks to be forgotten is seen, exported and erased."""

import json

from appliance.actions.ask_erasure import ask_erasure
from appliance.store.claims import list_erasure_requests
from tests.web.portal.people import a_person
from tests.web.portal.seating import as_it_is, path_of, seat


async def test_who_asks_to_be_forgotten_is_listed_until_a_manager_has_erased_them(running):
    manager = await a_person(running, "manager", "Yasmine")
    salma = await seat(running)
    assert "Ask to be forgotten" not in (await manager.get("/portal/reservations"))[1]
    await running.live.database.write(ask_erasure, salma.id)

    _, listed, _ = await manager.get("/portal/reservations")
    _, page, _ = await manager.get(path_of(salma))
    seen = (await as_it_is(running, salma)).version
    status, _, _ = await manager.post(f"{path_of(salma)}/erase", {"seen": seen})

    assert "Ask to be forgotten" in listed
    assert "This guest asks for their data to be erased" in page
    assert status == 303
    erased = await as_it_is(running, salma)
    assert (erased.customer_name, erased.customer_email, erased.customer_phone) == (None,) * 3
    assert erased.status == "confirmed"
    assert await running.live.database.read(list_erasure_requests) == []
    assert "Ask to be forgotten" not in (await manager.get("/portal/reservations"))[1]
    _, page, _ = await manager.get(path_of(salma))
    assert "Personal data erased · Yasmine" in page
    assert "Erase this guest" not in page
    assert "Salma Idrissi" not in page


async def test_what_somebody_else_has_just_changed_is_not_erased_unseen(running):
    manager = await a_person(running, "manager")
    salma = await seat(running)

    status, page, _ = await manager.post(f"{path_of(salma)}/erase", {"seen": salma.version + 1})

    assert status == 409
    assert "Somebody else has just changed this" in page
    assert (await as_it_is(running, salma)).customer_name == "Salma Idrissi"


async def test_what_is_held_of_a_guest_is_a_file_and_its_export_is_noted(running):
    manager = await a_person(running, "manager", "Yasmine")
    salma = await seat(running)

    status, text, headers = await manager.get(f"{path_of(salma)}/held.json")

    assert status == 200
    assert headers["Content-Disposition"].startswith("attachment")
    assert headers["Cache-Control"] == "no-store"
    held = json.loads(text)["reservations"][0]
    assert held["customer"]["name"] == "Salma Idrissi"
    noted = running.live.database.peek(
        lambda reader: reader.row("SELECT actor, detail FROM security_log WHERE what = 'exported'")
    )
    assert noted[0] == f"staff:{manager.id}"
    assert salma.id in noted[1]
    assert "Salma" not in noted[1]


async def test_a_host_sees_the_wish_and_no_button_for_it(running):
    host = await a_person(running, "host")
    salma = await seat(running)
    await running.live.database.write(ask_erasure, salma.id)

    _, page, _ = await host.get(path_of(salma))

    assert "This guest asks for their data to be erased" in page
    assert "/erase" not in page
    assert "held.json" not in page
