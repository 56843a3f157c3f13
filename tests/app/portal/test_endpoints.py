"""Endpoint pages, with a real receiver on loopback."""

import html
import re

import pytest

from appliance.outbox import EVENT_TYPES, EXTRA_TYPES
from appliance.tls.authority import Names, make_authority, to_pem
from appliance.webhooks.endpoints import get_endpoint, list_endpoints
from tests.app.portal.integrations import ROOM, SECRET, a_form, eventually, has, register, send_test
from tests.app.portal.people import a_person
from tests.builders import a_body
from tests.conftest import Running, with_settings

LIVE = "/portal/integrations"
EXTRA = "reservation.checkin_reverted"
TICK = re.compile(r'<input type="checkbox" name="event" value="([a-z_.]+)" (checked)?>')


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",)})


async def test_a_new_endpoint_receives_events_immediately_signed_with_the_secret_shown_once(
    receiver, manager
):
    page, secret = await register(manager, receiver.url)
    delivery = await send_test(manager, page)
    (request,) = await receiver.got(1)
    await eventually(lambda: has(manager, delivery, "Delivered"))
    _, text, _ = await manager.get(delivery)
    _, again, headers = await manager.get(page)

    assert request.headers["x-service-event"] == "webhook.test"
    assert secret not in again + text
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("room", "form", "said"),
    [
        (ROOM, {"url": "http://10.0.0.1/", "event": "webhook.test"}, "http://10.0.0.1/"),
        (ROOM, {"url": "ftp://x.example/", "event": "webhook.test"}, "ftp://x.example/"),
        (ROOM, {"url": "https://u:p@x.example/", "event": "webhook.test"}, "x.example/"),
        (ROOM, {"url": "https://x.example/#f", "event": "webhook.test"}, "https://x.example/#f"),
        (ROOM, {"url": "http://127.0.0.1:9/"}, "http://127.0.0.1:9/"),  # no event
        (LIVE, {"url": "http://127.0.0.1:9/", "event": "webhook.test"}, "http://127.0.0.1:9/"),
    ],
)
async def test_an_endpoint_url_is_validated_as_in_the_interface(running, manager, room, form, said):
    status, text, _ = await manager.post(f"{room}/endpoints", form)
    assert (status, said in text) == (400, True)
    for environment in running.box.environments:
        assert environment.database.peek(list_endpoints) == []


async def test_both_secrets_sign_until_the_old_one_is_revoked(receiver, manager):
    page, first = await register(manager, receiver.url)

    _, _, headers = await manager.post(f"{page}/roll", await a_form(manager, page))
    _, text, _ = await manager.get(headers["Location"])
    second = SECRET.search(text).group(0)
    await send_test(manager, page)
    await receiver.got(1)
    await manager.post(f"{page}/revoke-old-secret")
    await send_test(manager, page)
    both, one = await receiver.got(2)

    assert second != first
    assert both.headers["x-service-signature"].count("v1=") == 2
    assert one.headers["x-service-signature"].count("v1=") == 1


async def test_the_second_of_two_simultaneous_secret_rolls_is_refused(running, receiver):
    person, other = await a_person(running, "manager"), await a_person(running, "owner")
    page, _ = await register(person, receiver.url)
    theirs = await a_form(other, page)
    await person.post(f"{page}/roll", await a_form(person, page))
    status, _, _ = await other.post(f"{page}/roll", theirs)
    assert status == 409


async def test_a_deactivated_endpoint_receives_nothing(running, receiver, manager):
    page, _ = await register(manager, receiver.url, "reservation.created")

    await manager.post(f"{page}/deactivate")
    await running.call("POST", "/test/v1/reservations", json=a_body())
    status, _, _ = await manager.post(f"{page}/test")
    await manager.post(f"{page}/activate")
    await running.call(
        "POST", "/test/v1/reservations", json=a_body(slot="22:00", idempotencyKey="2")
    )
    (request,) = await receiver.got(1)

    assert status == 409
    assert request.reservation["slot"] == "22:00"


async def test_a_private_authority_can_be_added_and_an_invalid_one_stays_in_its_field(manager):
    page, _ = await register(manager, "https://127.0.0.1:9443/")
    authority = make_authority("Riad", Names(("localhost",), ()), 0)
    pem = to_pem(authority.key, [authority.certificate]).decode()

    status, refused, _ = await manager.post(f"{page}/trust", {"ca": "-----BEGIN <x>"})
    await manager.post(f"{page}/trust", {"ca": pem})

    assert status == 400
    assert html.escape("-----BEGIN <x>") in refused
    shown = (await manager.get(page))[1]
    assert pem.partition("-----BEGIN CERTIFICATE-----")[2].strip() in shown
    assert "PRIVATE" not in shown


async def an_endpoint_of_a_partner(running: Running) -> str:
    """Register an endpoint for two events through the partner API. Return its id."""
    events = ["reservation.created", "reservation.checked_in"]
    url = "http://127.0.0.1:9009/hook"
    status, made, _ = await running.call(
        "POST", "/test/v1/webhooks", json={"url": url, "events": events}
    )
    assert status == 201
    return made["id"]


async def test_staff_can_subscribe_a_partners_endpoint_to_an_optional_event(running, manager):
    endpoint_id = await an_endpoint_of_a_partner(running)
    page = f"{ROOM}/endpoints/{endpoint_id}"

    _, before, _ = await manager.get(page)
    shown = [*(await a_form(manager, page)).items()]
    form = [("event", "reservation.checked_in"), ("event", EXTRA), *shown]
    status, _, _ = await manager.post(f"{page}/events", form)

    assert [name for name, ticked in TICK.findall(before) if ticked] == [
        "reservation.created",
        "reservation.checked_in",
    ]
    assert len(TICK.findall(before)) == len((*EVENT_TYPES, *EXTRA_TYPES))
    assert status == 303
    noted = "SELECT actor FROM audit_log WHERE what = 'endpoint_events_chosen'"
    assert running.test.database.peek(lambda reader: reader.value(noted)) == f"staff:{manager.id}"
    _, listed, _ = await running.call("GET", "/test/v1/webhooks")
    assert listed["items"][0]["events"] == ["reservation.checked_in", EXTRA]


@pytest.mark.parametrize("form", [[], [("event", "nothing.known")]])
async def test_choosing_no_event_or_an_unknown_one_changes_nothing(running, form, manager):
    endpoint_id = await an_endpoint_of_a_partner(running)
    status, _, _ = await manager.post(f"{ROOM}/endpoints/{endpoint_id}/events", form)
    assert status == 400
    kept = running.test.database.peek(get_endpoint, endpoint_id).events
    assert kept == ("reservation.created", "reservation.checked_in")


async def test_an_endpoint_with_a_private_authority_is_listed_with_it(running, manager):
    _, form, _ = await manager.get(f"{ROOM}/endpoints/new")
    assert [name for name, checked in TICK.findall(form) if not checked] == [*EXTRA_TYPES]
    await register(manager, "https://127.0.0.1:9009/hook", "reservation.checked_in", EXTRA)
    _, listed, _ = await running.call("GET", "/test/v1/webhooks")
    assert [item["events"] for item in listed["items"]] == [["reservation.checked_in", EXTRA]]
    assert EXTRA not in listed["events"]
