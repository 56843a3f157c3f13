"""What an endpoint hears of is chosen anew in the portal: who registered it does not matter."""

import re

import pytest

from appliance.store.endpoints import get_endpoint
from tests.builders import a_body
from tests.conftest import Running, with_settings
from tests.web.portal.people import a_person

ROOM = "/test/portal/integrations"
EXTRA = "reservation.checkin_reverted"
TICK = re.compile(r'<input type="checkbox" name="event" value="([a-z_.]+)" (checked)?>')


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "clock_grace_minutes": 0})


async def an_endpoint_of_a_partner(running: Running) -> str:
    """Registered through the interface, for two events; its id."""
    events = ["reservation.created", "reservation.checked_in"]
    url = "http://127.0.0.1:9009/hook"
    status, made, _ = await running.call(
        "POST", "/test/v1/webhooks", json={"url": url, "events": events}
    )
    assert status == 201
    return made["id"]


async def test_the_seventh_event_is_ticked_for_an_endpoint_that_a_partner_registered(running):
    person = await a_person(running, "manager")
    endpoint_id = await an_endpoint_of_a_partner(running)
    page = f"{ROOM}/endpoints/{endpoint_id}"

    _, before, _ = await person.get(page)
    form = [("event", "reservation.checked_in"), ("event", EXTRA)]
    status, _, headers = await person.post(f"{page}/events", form)
    _, after, _ = await person.get(headers["Location"])

    assert [name for name, ticked in TICK.findall(before) if ticked] == [
        "reservation.created",
        "reservation.checked_in",
    ]
    assert len(TICK.findall(before)) == 7
    assert status == 303
    assert "hears of these events from now on" in after
    _, listed, _ = await running.call("GET", "/test/v1/webhooks")
    assert listed["items"][0]["events"] == ["reservation.checked_in", EXTRA]


async def test_the_next_event_goes_by_the_new_choice(running):
    person = await a_person(running, "manager")
    endpoint_id = await an_endpoint_of_a_partner(running)
    path = f"{ROOM}/endpoints/{endpoint_id}/events"

    await person.post(path, [("event", "reservation.cancelled")])
    await running.call("POST", "/test/v1/reservations", json=a_body())

    deliveries = "SELECT count(*) FROM delivery"
    assert running.test.database.peek(lambda reader: reader.value(deliveries)) == 0


@pytest.mark.parametrize("form", [[], [("event", "nothing.known")]])
async def test_no_event_or_an_unknown_one_changes_nothing(running, form):
    person = await a_person(running, "manager")
    endpoint_id = await an_endpoint_of_a_partner(running)

    status, text, _ = await person.post(f"{ROOM}/endpoints/{endpoint_id}/events", form)

    assert status == 400
    assert "Invalid event list" in text
    kept = running.test.database.peek(get_endpoint, endpoint_id).events
    assert kept == ("reservation.created", "reservation.checked_in")


async def test_who_chose_is_noted(running):
    person = await a_person(running, "owner")
    endpoint_id = await an_endpoint_of_a_partner(running)

    await person.post(f"{ROOM}/endpoints/{endpoint_id}/events", [("event", EXTRA)])

    found = running.test.database.peek(
        lambda reader: reader.rows(
            "SELECT actor FROM security_log WHERE what = 'endpoint_events_chosen'"
        )
    )
    assert [actor for (actor,) in found] == [f"staff:{person.id}"]
