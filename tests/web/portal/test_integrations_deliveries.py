"""Deliveries in the portal, with a real receiver on loopback."""

import asyncio
import re

import pytest

from appliance.store.conditions import Condition, put_condition
from appliance.webhooks.conditions import CLOCK_HELD, OFFLINE
from tests.appliance.webhooks.receivers import OK, an_answer
from tests.builders import a_body
from tests.conftest import with_settings
from tests.web.portal.integrations import ROOM, die, eventually, has, register, send_test
from tests.web.portal.people import a_person
from tests.web.portal.test_integrations_keys import a_form


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "clock_grace_minutes": 0})


async def test_a_dead_delivery_shows_what_was_sent_and_goes_out_again_once(running, receiver):
    person = await a_person(running, "manager")
    receiver.always = an_answer(500, body=b"<script>no</script>")
    page, _ = await register(person, receiver.url)
    delivery = await send_test(person, page)
    (failed,) = await receiver.got(1)
    await eventually(lambda: has(person, delivery, "Answered with status 500"))
    await die(running)
    _, dead, _ = await person.get(delivery)

    receiver.always = OK
    first, second = await asyncio.gather(*(person.post(f"{delivery}/replay") for _ in range(2)))
    await eventually(lambda: has(person, delivery, "Delivered"))

    assert "X-Service-Signature: " + failed.headers["x-service-signature"] in dead
    assert "&lt;script&gt;no&lt;/script&gt;" in dead
    assert "<script>no" not in dead
    assert {first[2]["Location"], second[2]["Location"]} == {
        f"{delivery}?note=replayed", f"{delivery}?note=replayed-anyway"
    }  # fmt: skip
    assert [r.id for r in receiver.requests] == [failed.id] * 2


async def test_many_are_counted_before_and_followed_while_they_go_out(running, receiver):
    person = await a_person(running, "manager")
    receiver.always = an_answer(503)
    page, _ = await register(person, receiver.url)
    for _ in range(3):
        await send_test(person, page)
    await receiver.got(3)
    await eventually(lambda: has(person, page, "<dt>Failures in a row</dt><dd>3</dd>"))
    await die(running)
    endpoint_id = page.rpartition("/")[2]
    ask = f"{ROOM}/replay?endpoint={endpoint_id}"
    _, asked, _ = await person.get(ask)
    form = {"endpoint": endpoint_id, "which": "dead", **await a_form(person, ask)}

    receiver.always = OK
    answers = await asyncio.gather(*(person.post(f"{ROOM}/replay", form) for _ in range(2)))
    progress = answers[0][2]["Location"]
    await receiver.got(6)
    await eventually(lambda: has(person, progress, "Nothing waits any more."))

    assert "3 deliveries go out again" in asked
    assert {headers["Location"] for _, _, headers in answers} == {progress}
    assert await has(person, progress, "3 deliveries put in line")
    assert len(receiver.requests) == 6


async def test_only_a_period_is_replayed_when_one_is_asked_for(running, receiver):
    person = await a_person(running, "manager")
    page, _ = await register(person, receiver.url)
    for _ in range(2):  # at 19:00 and at 20:00 of Casablanca
        delivery = await send_test(person, page)
        await eventually(lambda at=delivery: has(person, at, "Delivered"))
        running.clock.advance(3600)
    endpoint_id = page.rpartition("/")[2]
    period = f"endpoint={endpoint_id}&which=all&from=2026-11-21T19:30&until=2026-11-21T21:00"

    _, asked, _ = await person.get(f"{ROOM}/replay?{period}")

    assert "1 delivery goes out again" in asked


async def test_the_log_is_filtered_by_endpoint_state_type_and_day(running, receiver):
    person = await a_person(running, "manager")
    page, _ = await register(person, receiver.url, "reservation.created", "webhook.test")
    await running.call("POST", "/test/v1/reservations", json=a_body())
    delivery = await send_test(person, page)
    await eventually(lambda: has(person, delivery, "Delivered"))
    endpoint_id = page.rpartition("/")[2]

    async def shown(query: str) -> list[str]:
        _, text, _ = await person.get(f"{ROOM}/deliveries?{query}")
        return re.findall(r'/deliveries/[0-9a-f-]{36}"><bdi[^>]*>([^<]+)<', text)

    both = ["webhook.test", "reservation.created"]
    assert await shown("") == both
    assert (
        await shown(f"endpoint={endpoint_id}&state=delivered&from=2026-11-21&to=2026-11-21") == both
    )
    assert await shown("type=webhook.test") == ["webhook.test"]
    assert await shown("state=dead") == []
    assert await shown("to=2026-11-20") == []
    assert await shown("before=1.0") == []
    for wrong in ("state=lost", "type=x", "endpoint=x", "from=2026-13-01"):
        assert (await person.get(f"{ROOM}/deliveries?{wrong}"))[0] == 400


@pytest.mark.parametrize(
    ("name", "sentence"),
    [(OFFLINE, "The box is offline: webhooks wait"), (CLOCK_HELD, "does not trust its clock")],
)
async def test_what_is_our_own_fault_stands_on_every_page_with_a_remedy(running, name, sentence):
    person = await a_person(running, "manager")
    await running.test.database.write(put_condition, Condition(name, "", running.clock.now(), "…"))

    for path in ("", "/deliveries", "/keys/new"):
        assert sentence in (await person.get(ROOM + path))[1]


async def test_a_replay_of_before_the_last_start_leads_to_the_log(running):
    person = await a_person(running, "manager")

    status, _, headers = await person.get(f"{ROOM}/replays/01890000-0000-7000-8000-000000000000")

    assert (status, headers["Location"]) == (303, f"{ROOM}/deliveries")
