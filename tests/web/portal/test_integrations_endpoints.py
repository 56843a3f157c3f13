"""Endpoints in the portal, with a real receiver on loopback."""

import html
import re

import pytest

from appliance.store.conditions import Condition, put_condition
from appliance.store.endpoints import list_endpoints
from appliance.webhooks.conditions import ENDPOINT_BLOCKED
from tests.builders import a_body
from tests.conftest import with_settings
from tests.web.portal.integrations import ROOM, SECRET, eventually, has, register, send_test
from tests.web.portal.people import a_person
from tests.web.portal.test_integrations_keys import a_form


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "clock_grace_minutes": 0})


async def test_an_endpoint_receives_at_once_signed_with_the_secret_said_once(running, receiver):
    person = await a_person(running, "manager")

    page, secret = await register(person, receiver.url)
    delivery = await send_test(person, page)
    (request,) = await receiver.got(1)
    await eventually(lambda: has(person, delivery, "Delivered"))
    _, text, _ = await person.get(delivery)
    _, again, headers = await person.get(page)

    assert request.headers["x-service-event"] == "webhook.test"
    assert "byte for byte" in text
    assert secret not in again + text
    assert headers["Cache-Control"] == "no-store"


async def test_the_headers_shown_are_those_that_are_sent_but_for_the_signature(running, receiver):
    person = await a_person(running, "manager")
    page, _ = await register(person, receiver.url)
    delivery = await send_test(person, page)
    (request,) = await receiver.got(1)
    await eventually(lambda: has(person, delivery, "Delivered"))

    _, text, _ = await person.get(delivery)
    shown = re.search(r'id="request-head"[^>]*>([^<]*)<', text).group(1).split("\n")
    told = dict(line.split(": ", 1) for line in shown[1:])

    assert shown[0] == request.line
    sent = {k: v for k, v in request.headers.items() if k != "x-service-signature"}
    assert {name.lower(): value for name, value in told.items()} == sent


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.1/", "ftp://x.example/", "https://u:p@x.example/", "https://x.example/#f"],
)
async def test_an_address_is_checked_as_the_interface_checks_it(running, url):
    person = await a_person(running, "manager")

    form = [("url", url), ("event", "webhook.test")]
    status, text, _ = await person.post(f"{ROOM}/endpoints", form)

    assert status == 400
    assert "Webhook URL refused" in text
    assert running.test.database.peek(list_endpoints) == []


async def test_live_wants_https_here_too(running, receiver):
    person = await a_person(running, "manager")
    form = [("url", receiver.url), ("event", "webhook.test")]

    status, _, _ = await person.post("/portal/integrations/endpoints", form)

    assert status == 400


async def test_no_event_is_no_subscription(running, receiver):
    person = await a_person(running, "manager")

    status, text, _ = await person.post(f"{ROOM}/endpoints", {"url": receiver.url})

    assert status == 400
    assert receiver.url in text


async def test_a_roll_is_shown_once_and_both_secrets_sign_until_the_old_one_is_revoked(
    running, receiver
):
    person = await a_person(running, "manager")
    page, first = await register(person, receiver.url)

    _, _, headers = await person.post(f"{page}/roll", await a_form(person, page))
    _, text, _ = await person.get(headers["Location"])
    second = SECRET.search(text).group(0)
    await send_test(person, page)
    await receiver.got(1)
    await person.post(f"{page}/revoke-old-secret")
    await send_test(person, page)
    both, one = await receiver.got(2)

    assert second != first
    assert both.headers["x-service-signature"].count("v1=") == 2
    assert one.headers["x-service-signature"].count("v1=") == 1


async def test_of_two_who_roll_what_they_saw_the_second_is_told(running, receiver):
    person, other = await a_person(running, "manager"), await a_person(running, "owner")
    page, _ = await register(person, receiver.url)
    theirs = await a_form(other, page)
    await person.post(f"{page}/roll", await a_form(person, page))

    status, text, _ = await other.post(f"{page}/roll", theirs)

    assert status == 409
    assert "Somebody changed this meanwhile" in text


async def test_a_deactivated_endpoint_hears_nothing_until_it_is_activated_again(running, receiver):
    person = await a_person(running, "manager")
    page, _ = await register(person, receiver.url, "reservation.created")

    await person.post(f"{page}/deactivate")
    await running.call("POST", "/test/v1/reservations", json=a_body())
    status, text, _ = await person.post(f"{page}/test")
    await person.post(f"{page}/activate")
    await running.call(
        "POST", "/test/v1/reservations", json=a_body(slot="22:00", idempotencyKey="2")
    )
    (request,) = await receiver.got(1)

    assert (status, "is deactivated: activate it first" in text) == (409, True)
    assert request.reservation["slot"] == "22:00"


async def test_a_receiver_of_the_house_is_trusted_by_its_certificate_alone(running):
    person = await a_person(running, "manager")
    page, _ = await register(person, "https://127.0.0.1:9443/")
    _, before, _ = await person.get(page)

    wrong, _, _ = await person.post(f"{page}/trust", {"which": "pin", "pin": "12:34"})
    await person.post(f"{page}/trust", {"which": "pin", "pin": "ab" * 32})
    _, pinned, _ = await person.get(page)

    assert "authorities that this machine trusts" in before
    assert wrong == 400
    assert "ab" * 32 in pinned


@pytest.mark.parametrize(("which", "text"), [("ca", "-----BEGIN <x>"), ("pin", "12:34")])
async def test_a_certificate_that_is_refused_stays_in_its_field(running, which, text):
    person = await a_person(running, "manager")
    page, _ = await register(person, "https://127.0.0.1:9443/")

    status, refused, _ = await person.post(f"{page}/trust", {"which": which, which: text})

    assert status == 400
    assert f'value="{which}" checked' in refused
    assert html.escape(text) in refused
    assert '<details class="more" open><summary>Trust something else' in refused


async def test_a_blocked_endpoint_says_so_and_what_to_do(running):
    person = await a_person(running, "manager")
    page, _ = await register(person, "http://127.0.0.1:9009/")
    condition = Condition(ENDPOINT_BLOCKED, page.rpartition("/")[2], running.clock.now(), "…")
    await running.test.database.write(put_condition, condition)

    _, text, _ = await person.get(page)

    assert "Blocked" in text
    assert "webhooks.allow_networks" in text
