"""A partner manages its own endpoints: change, new secret, health, attempts, bulk replay."""

import hmac

import pytest

from tests.builders import a_body, a_key, table_id
from tests.conftest import Running, with_settings
from tests.contract.calls import UNKNOWN, registered
from tests.contract.test_own_deliveries import replay, settled, states
from tests.webhooks.receivers import an_answer

NOBODY_HOME = "http://127.0.0.1:9009/hook"  # no server listens there


@pytest.fixture
def settings():
    return with_settings(
        api={"rate_limit_per_minute": 100_000}, webhooks={"allow_networks": ("127.0.0.0/8",)}
    )


async def care(running: Running, method: str, endpoint: dict, path: str = "", key=None, **body):
    url = f"/test/v1/webhooks/{endpoint['id']}{path}"
    return await running.call(method, url, key=key, json=body or None)


async def book(running: Running, number: int) -> None:
    body = a_body(tableId=table_id(f"T{number}"), idempotencyKey=str(number))
    assert (await running.call("POST", "/test/v1/reservations", json=body))[0] == 201


def signed_by(request, secret: str) -> bool:
    parts = [part.split("=") for part in request.headers["x-service-signature"].split(",")]
    t = dict(parts)["t"]
    digest = hmac.new(secret.encode(), t.encode() + b"." + request.raw, "sha256").hexdigest()
    return ["v1", digest] in parts


async def test_rolling_a_secret_loses_no_delivery(running, receiver):
    endpoint = await registered(running, "/test", url=receiver.url)
    await book(running, 1)
    await receiver.got(1)

    status, rolled, _ = await care(running, "POST", endpoint, "/roll")

    assert (status, rolled["oldValidUntil"]) == (200, "2026-11-22T19:00:00.000Z")
    await book(running, 2)
    await receiver.got(2)
    assert signed_by(receiver.requests[1], endpoint["secret"])
    assert signed_by(receiver.requests[1], rolled["secret"])
    running.clock.advance(86_400)
    await book_next_day(running)
    await receiver.got(3)
    assert not signed_by(receiver.requests[2], endpoint["secret"])
    assert signed_by(receiver.requests[2], rolled["secret"])


async def book_next_day(running: Running) -> None:
    body = a_body(date="2026-11-22", idempotencyKey="next")
    assert (await running.call("POST", "/test/v1/reservations", json=body))[0] == 201


async def test_an_endpoint_with_a_changed_url_keeps_its_secret_and_its_queue(running, receiver):
    endpoint = await registered(running, "/test", url=NOBODY_HOME)
    await book(running, 1)
    while not (await care(running, "GET", endpoint))[1]["failingSince"]:
        pass

    events = ["reservation.created", "reservation.updated"]
    status, moved, _ = await care(running, "PATCH", endpoint, url=receiver.url, events=events)

    assert (status, moved["url"], moved["events"], moved["active"]) == (
        200, receiver.url, events, True,
    )  # fmt: skip
    await replay(running, endpoint, states=["pending", "dead"])
    [request, *_] = await receiver.got(1)
    assert signed_by(request, endpoint["secret"])


async def test_a_reactivated_endpoint_can_get_the_events_that_it_missed(running, receiver):
    endpoint = await registered(running, "/test", url=receiver.url)
    await care(running, "PATCH", endpoint, active=False)
    await book(running, 1)
    status, active, _ = await care(running, "PATCH", endpoint, active=True)
    assert (status, active["active"]) == (200, True)
    await book(running, 2)
    [request] = await receiver.got(1)
    assert request.reservation["table"]["id"] == table_id("T2")
    _, missed, _ = await running.call("GET", "/test/v1/events")
    assert len(missed["items"]) == 2  # the missed event is in the list of events


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"url": "ftp://x"}, "INVALID_WEBHOOK_URL", "url"),
        ({"url": 7}, "INVALID_WEBHOOK_URL", "url"),
        ({"events": []}, "INVALID_EVENT_TYPE", "events"),
        ({"active": "no"}, "VALIDATION_ERROR", "active"),
        ({"enabled": True}, "VALIDATION_ERROR", "enabled"),
    ],
)
async def test_an_invalid_change_of_an_endpoint_changes_nothing(running, body, code, field):
    endpoint = await registered(running, "/test", url=NOBODY_HOME)
    _, refusal, _ = await care(running, "PATCH", endpoint, **{"active": False, **body})
    assert (refusal["code"], refusal["field"]) == (code, field)
    _, found, _ = await care(running, "GET", endpoint)
    assert (found["active"], found["url"]) == (True, NOBODY_HOME)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("PATCH", ""), ("POST", "/roll"), ("GET", f"/deliveries/{UNKNOWN}")],
)
async def test_an_endpoint_of_another_key_is_unknown(running, method, path):
    endpoint = await registered(running, "/test", url=NOBODY_HOME)
    body = {"active": False} if method == "PATCH" else {}
    key = await a_key(running.test)
    status, refusal, _ = await care(running, method, endpoint, path, key=key, **body)
    assert (status, refusal["code"]) == (404, "NOT_FOUND")


async def test_the_health_of_an_endpoint_says_since_when_it_fails(running, receiver):
    endpoint = await registered(running, "/test", url=receiver.url)
    _, found, _ = await care(running, "GET", endpoint)
    assert (found["lastSuccessAt"], found["failingSince"]) == (None, None)
    await book(running, 1)
    await receiver.got(1)
    await settled(running, endpoint)
    receiver.always = an_answer(500)
    running.clock.advance(60)
    await book(running, 2)
    await receiver.got(2)
    while not (await care(running, "GET", endpoint))[1]["failingSince"]:
        pass

    _, found, _ = await care(running, "GET", endpoint)

    assert found["lastSuccessAt"] == "2026-11-21T19:00:00.000Z"
    assert found["failingSince"] == "2026-11-21T19:01:00.000Z"
    delivery_id = receiver.requests[1].id
    _, shown, _ = await care(running, "GET", endpoint, f"/deliveries/{delivery_id}")
    assert (shown["state"], shown["attempts"], len(shown["attemptsMade"])) == ("pending", 1, 1)
    made = shown["attemptsMade"][0]
    assert (made["n"], made["outcome"], made["httpStatus"], made["at"]) == (
        1, "http_500", 500, "2026-11-21T19:01:00.000Z",
    )  # fmt: skip


async def test_a_replay_can_be_limited_by_states_and_time_together(running, receiver):
    endpoint = await registered(running, "/test", url=receiver.url)
    for number in (1, 2, 3):
        await book(running, number)
        running.clock.advance(60)
    await receiver.got(3)
    await settled(running, endpoint)

    assert (await replay(running, endpoint))[1] == {"queued": 0}
    chosen = {"states": ["delivered"], "since": "2026-11-21T19:01:00Z"}
    assert (await replay(running, endpoint, **chosen))[1] == {"queued": 2}
    await receiver.got(5)
    await settled(running, endpoint)
    chosen = {"states": ["delivered", "dead"], "until": "2026-11-21T19:01:00Z"}
    assert (await replay(running, endpoint, **chosen))[1] == {"queued": 1}
    await receiver.got(6)
    assert set((await states(running, endpoint)).values()) <= {"delivered", "pending"}


@pytest.mark.parametrize(
    "body", [{"states": []}, {"states": "dead"}, {"states": ["cancelled"]}, {"states": [1]},
             {"until": "now"}, {"state": ["dead"]},
             {"since": "2026-11-21T19:00:00Z", "until": "2026-11-21T18:00:00Z"}],
)  # fmt: skip
async def test_a_replay_with_an_invalid_selection_is_refused(running, body):
    endpoint = await registered(running, "/test", url=NOBODY_HOME)
    status, refusal = await replay(running, endpoint, **body)
    assert (status, refusal["code"]) == (400, "VALIDATION_ERROR")
