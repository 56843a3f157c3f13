"""A delivery is found by what a partner or a guest can tell: its id, a reservation's, a code."""

import re

import pytest

from tests.builders import a_body, table_id
from tests.conftest import Running, with_settings
from tests.web.portal.people import a_person

ROOM = "/test/portal/integrations/deliveries"
LINE = re.compile(r'href="/test/portal/integrations/deliveries/([0-9a-f-]{36})"')


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "clock_grace_minutes": 0})


@pytest.fixture
async def booked(running: Running):
    """Two reservations of a partner, each told to one endpoint."""
    endpoint = {"url": "http://127.0.0.1:9009/hook"}
    assert (await running.call("POST", "/test/v1/webhooks", json=endpoint))[0] == 201
    made = []
    for number in ("T1", "T2"):
        body = a_body(tableId=table_id(number), idempotencyKey=number)
        status, answer, _ = await running.call("POST", "/test/v1/reservations", json=body)
        assert status == 201, answer
        made.append(answer)
    return made


@pytest.fixture
async def manager(running):
    return await a_person(running, "manager")


async def all_of(manager):
    return LINE.findall((await manager.get(ROOM))[1])


@pytest.mark.parametrize("spelling", ["{code}", "{code_alone}", " {id} ", "{capitals}"])
async def test_a_reservation_is_found_by_its_code_and_by_its_id(manager, booked, spelling):
    first = booked[0]
    code, id_ = first["accessCode"], first["serviceReservationId"]
    text = spelling.format(code=code, code_alone=code[4:].lower(), id=id_, capitals=id_.upper())

    _, page, _ = await manager.get(f"{ROOM}?find={text}")
    (found,) = LINE.findall(page)
    _, story, _ = await manager.get(f"{ROOM}/{found}")

    assert len(await all_of(manager)) == 2
    assert f"/reservations/{id_}" in story


async def test_a_delivery_is_opened_by_the_id_that_its_receiver_saw(manager, booked):
    delivery_id = (await all_of(manager))[0]

    status, _, headers = await manager.get(f"{ROOM}?find={delivery_id}")

    assert status == 303
    assert headers["Location"].partition("?")[0] == f"{ROOM}/{delivery_id}"


@pytest.mark.parametrize("text", ["SVC-ZZZZ", "00000000-0000-4000-8000-000000000000", "Salma", "%"])
async def test_what_is_not_known_is_nothing_and_stays_in_the_field(manager, booked, text):
    async with manager.running.client.get(
        ROOM, params={"find": text}, headers=manager.headers
    ) as response:
        page = await response.text()

    assert LINE.findall(page) == []
    assert "No delivery fits" in page
    assert f'value="{text}"' in page


async def test_a_reservation_leads_a_manager_to_what_was_sent_of_it(running, manager, booked):
    path = f"/test/portal/reservations/{booked[0]['serviceReservationId']}"
    host = await a_person(running, "host")

    _, seen, _ = await manager.get(path)
    _, seen_by_host, _ = await host.get(path)

    link = f"{ROOM}?find={booked[0]['serviceReservationId']}"
    assert f'href="{link}"' in seen
    assert link not in seen_by_host
