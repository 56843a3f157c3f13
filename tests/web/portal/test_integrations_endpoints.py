"""Endpoints and deliveries in the portal, with a real receiver on loopback."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest

from appliance.store.conditions import Condition, put_condition
from appliance.store.endpoints import list_endpoints
from appliance.webhooks.conditions import CLOCK_HELD, ENDPOINT_BLOCKED, OFFLINE
from tests.appliance.webhooks.receivers import OK, Receiver, a_server, an_answer
from tests.builders import a_body
from tests.conftest import Running, with_settings
from tests.web.portal.people import Person, a_person
from tests.web.portal.test_integrations_keys import a_form

ROOM = "/test/portal/integrations"
SECRET = re.compile(r"whsec_[\w-]{43}")


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "clock_grace_minutes": 0})


@pytest.fixture
async def receiver():
    found = Receiver()
    async with a_server(found.converse) as port:
        found.port = port
        yield found


async def register(person: Person, url: str, *events: str) -> tuple[str, str]:
    """An endpoint made in the portal: the address of its page, and its secret."""
    token = (await a_form(person, f"{ROOM}/endpoints/new"))["once"]
    form = [("once", token), ("url", url), *(("event", e) for e in events or ("webhook.test",))]
    status, text, headers = await person.post(f"{ROOM}/endpoints", form)
    assert status == 303, text
    _, text, _ = await person.get(headers["Location"])
    return headers["Location"], SECRET.search(text).group(0)


async def eventually(question: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await question():  # noqa: ASYNC110 - asked over HTTP
            await asyncio.sleep(0.05)


async def send_test(person: Person, page: str) -> str:
    """A test event; the address of its delivery."""
    _, _, headers = await person.post(f"{page}/test", await a_form(person, page))
    return headers["Location"].partition("?")[0]


async def has(person: Person, path: str, words: str) -> bool:
    return words in (await person.get(path))[1]


async def die(running: Running) -> None:
    """Every delivery of the test environment is dead."""

    def kill(tx):
        tx.execute(
            """UPDATE delivery SET state = 'dead', finished_at = :now, attempts = 6
               WHERE state = 'pending'""",
            {"now": tx.now},
        )

    await running.test.database.write(kill)


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


async def test_a_blocked_endpoint_says_so_and_what_to_do(running):
    person = await a_person(running, "manager")
    page, _ = await register(person, "http://127.0.0.1:9009/")
    condition = Condition(ENDPOINT_BLOCKED, page.rpartition("/")[2], running.clock.now(), "…")
    await running.test.database.write(put_condition, condition)

    _, text, _ = await person.get(page)

    assert "Blocked" in text
    assert "webhooks.allow_networks" in text


async def test_a_replay_of_before_the_last_start_leads_to_the_log(running):
    person = await a_person(running, "manager")

    status, _, headers = await person.get(f"{ROOM}/replays/01890000-0000-7000-8000-000000000000")

    assert (status, headers["Location"]) == (303, f"{ROOM}/deliveries")
