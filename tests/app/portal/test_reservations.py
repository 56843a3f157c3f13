"""The forms of a reservation's page, used one after another and at the same time."""

import json
import re
import secrets

import pytest

from appliance.door.guest_pass import pass_text
from appliance.privacy import ask_erasure
from appliance.reservations.by_guest import claim
from appliance.reservations.rows import list_erasure_requests
from tests.app.portal.door_room import a_terminal, scan
from tests.app.portal.people import a_person
from tests.app.portal.seating import an_amendment, as_it_is, path_of, rows, seat, value_of
from tests.builders import table_id


async def test_moving_a_reservation_keeps_its_pass_and_is_recorded_in_its_history(running, host):
    salma = await seat(running)

    status, _, _ = await host.post(
        path_of(salma, "move"), {"seen": salma.version, "table": table_id("T3")}
    )

    now = await as_it_is(running, salma)
    assert status == 303
    assert (now.table_id, now.pass_id, now.generation) == (
        table_id("T3"), salma.pass_id, salma.generation,
    )  # fmt: skip
    assert "Moved from T1 to T3 · Yasmine" in (await host.get(path_of(salma)))[1]


@pytest.mark.parametrize(
    ("typed", "numbers"),
    [("+212 (0)6 12 34 56 78", ["+212612345678"]), ("06 12 34 56 78 poste 3", ["+212612345678"]),
     ("06 12 34 56 78 / 05 24 00 00 00", ["+212612345678", "+212524000000"]), ("voir 12 34", [])],
)  # fmt: skip
async def test_only_valid_phone_numbers_are_links(running, host, typed, numbers):
    salma = await seat(running, customer_phone=typed)

    _, page, _ = await host.get(path_of(salma))

    assert typed in page
    assert re.findall(r'href="tel:([^"]*)"', page) == numbers
    assert re.findall(r'href="https://wa.me/([^"?]*)"', page) == [n[1:] for n in numbers]


async def test_the_email_link_is_addressed_only_to_the_guest(running, host):
    address = "a?bcc=x%40evil.example&subject=hi@example.com"
    salma = await seat(running, customer_email=address)

    _, page, _ = await host.get(path_of(salma))

    assert re.findall(r'href="(mailto:[^"]*)"', page) == [
        "mailto:a%3Fbcc%3Dx%2540evil.example%26subject%3Dhi@example.com"
    ]


async def test_a_new_code_invalidates_only_this_guests_pass_link_and_access_code(running, host):
    salma, other = await seat(running), await seat(running, table="T2", access_code=None)
    old, others = await pass_of(running, salma), await pass_of(running, other)
    _, token = await a_terminal(running)
    link, claim = links_of(running, salma)

    status, _, _ = await host.post(path_of(salma, "new-code"), {"seen": salma.version})
    again, _, _ = await host.post(path_of(salma, "new-code"), {"seen": salma.version})

    assert (status, again) == (303, 409)
    now = await as_it_is(running, salma)
    assert (now.generation, now.old_codes) == (salma.generation + 1, [salma.access_code])
    replaced = [old, salma.access_code, link, claim]
    valid = [await pass_of(running, now), others, now.access_code, *links_of(running, now)]
    for code in replaced:
        _, verdict = await scan(running, token, code, secrets.token_hex(8))
        assert (verdict["result"], verdict["colour"]) == ("revoked", "amber"), code
    verdicts = [await scan(running, token, code, secrets.token_hex(8)) for code in valid]
    assert "revoked" not in [verdict["result"] for _, verdict in verdicts]
    for path, expected in ((link, 404), (claim, 404), *((each, 200) for each in valid[3:])):
        async with running.client.get(path.removeprefix(running.live.links.base)) as response:
            assert response.status == expected, path
    logged = await rows(running, "SELECT what, actor FROM audit_log ORDER BY seq DESC LIMIT 1")
    assert logged == [("pass_reissued", f"staff:{host.id}")]
    told = "SELECT reservation_id FROM event WHERE type = 'reservation.updated'"
    assert await rows(running, told) == [(salma.id,)]


async def test_an_access_code_told_by_phone_can_be_kept_when_the_pass_is_replaced(running, host):
    salma = await seat(running)
    _, token = await a_terminal(running)

    await host.post(path_of(salma, "new-code"), {"seen": salma.version, "keep_code": "1"})

    assert (await as_it_is(running, salma)).access_code == salma.access_code
    _, verdict = await scan(running, token, salma.access_code, "by-phone")
    assert verdict["result"] == "checked_in"


async def test_a_new_code_removes_the_reservation_from_browsers_that_claimed_the_old_link(
    running, host
):
    salma = await seat(running)
    database = running.live.database
    await database.write(claim, salma.id, b"somebody else's browser")

    await host.post(path_of(salma, "new-code"), {"seen": salma.version})

    assert await rows(running, "SELECT 1 FROM claim") == []


def links_of(running, reservation):
    keyring, links = running.live.keyring, running.live.links
    link = reservation.id, reservation.link_generation
    return links.access(keyring.access_token(*link)), links.claim(keyring.claim_token(*link))


async def pass_of(running, reservation):
    return await running.live.database.read(pass_text, running.live.keyring, "live", reservation)


async def test_only_free_tables_are_offered_and_an_occupied_one_is_refused(running, host):
    salma = await seat(running)
    await seat(running, table="T2", access_code=None)

    _, page, _ = await host.get(path_of(salma))
    assert table_id("T3") in page
    assert table_id("T2") not in page

    status, page, _ = await host.post(
        path_of(salma, "move"), {"seen": salma.version, "table": table_id("T2")}
    )
    assert status == 409
    assert 'role="alert"' in page


async def test_cancelling_frees_the_table_and_notifies_the_partner(running, host):
    salma = await seat(running)
    status, _, _ = await host.post(path_of(salma, "cancel"), {"seen": salma.version})
    assert status == 303
    assert (await as_it_is(running, salma)).status == "cancelled"
    assert await rows(running, "SELECT type FROM event") == [("reservation.cancelled",)]


async def test_the_drawer_is_a_fragment_of_the_page_and_shows_errors(running, host):
    salma = await seat(running)
    _, part, _ = await host.get(path_of(salma) + "?part=1")
    assert part.lstrip().startswith("<article")
    assert f'data-version="{salma.version}"' in part

    status, part, headers = await host.post(
        path_of(salma, "amend"), an_amendment(salma, guests=9), **{"HX-Request": "true"}
    )

    assert status == 400
    assert part.lstrip().startswith("<article")
    assert 'role="alert"' in part
    assert "HX-Retarget" not in headers


async def test_two_hosts_who_edit_the_same_reservation_lose_no_changes(running, host):
    salma = await seat(running)
    other = await a_person(running, "host", "Karim")
    await other.post(path_of(salma, "amend"), an_amendment(salma, notes="near the music"))

    status, page, _ = await host.post(
        path_of(salma, "amend"),
        an_amendment(salma, customer_phone="0611000000", notes="gluten free"),
    )

    assert status == 409
    assert value_of(page, "customer_phone") == "0611000000"
    assert ">gluten free</textarea>" in page
    assert (await as_it_is(running, salma)).notes == "near the music"

    again = an_amendment(salma, guests=3, notes="near the music, gluten free")
    status, _, _ = await host.post(
        path_of(salma, "amend"), again | {"seen": value_of(page, "seen")}
    )
    now = await as_it_is(running, salma)
    assert (status, now.guests, now.notes) == (303, 3, "near the music, gluten free")


async def test_an_erasure_request_is_listed_until_a_manager_carries_it_out(running):
    manager = await a_person(running, "manager", "Yasmine")
    salma = await seat(running)
    assert "Data erasure requests" not in (await manager.get("/portal/reservations"))[1]
    await running.live.database.write(ask_erasure, salma.id)

    _, page, _ = await manager.get("/portal/reservations")
    assert f'href="{path_of(salma)}#data"' in page
    seen = (await as_it_is(running, salma)).version
    status, _, _ = await manager.post(f"{path_of(salma)}/erase", {"seen": seen})

    assert status == 303
    erased = await as_it_is(running, salma)
    assert (erased.customer_name, erased.customer_email, erased.customer_phone) == (None,) * 3
    assert erased.status == "confirmed"
    assert await running.live.database.read(list_erasure_requests) == []
    assert "Data erasure requests" not in (await manager.get("/portal/reservations"))[1]
    _, page, _ = await manager.get(path_of(salma))
    assert "Erase this guest" not in page
    assert "Salma Idrissi" not in page


async def test_the_data_of_a_guest_can_be_downloaded_and_the_export_is_audited(running):
    manager = await a_person(running, "manager", "Yasmine")
    salma = await seat(running)

    status, text, headers = await manager.get(f"{path_of(salma)}/held.json")

    assert status == 200
    assert headers["Content-Disposition"].startswith("attachment")
    assert headers["Cache-Control"] == "no-store"
    held = json.loads(text)["reservations"][0]
    assert held["customer"]["name"] == "Salma Idrissi"
    noted = running.live.database.peek(
        lambda reader: reader.row("SELECT actor, detail FROM audit_log WHERE what = 'exported'")
    )
    assert noted[0] == f"staff:{manager.id}"
    assert salma.id in noted[1]
    assert "Salma" not in noted[1]
