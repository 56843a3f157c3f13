"""Answers that no test of tests/contract asks for match the OpenAPI document as well.

Of the other answers, tests/contract/conftest.py compares each one with the document.
"""

import pytest

from appliance.api_keys import SCOPES
from appliance.core.errors import RateLimited, Unavailable
from appliance.http.rate_limit import RateLimit
from tests.app.api.described import faults_of_answer, operations
from tests.builders import TONIGHT, a_body, a_key, table_id
from tests.conftest import with_settings
from web.routes import PARTNER_ROUTE_TABLE

NOBODY = "00000000-0000-4000-8000-000000000000"
RECEIVER = {"url": "https://127.0.0.1:9009/hook"}  # no server listens there
HOLD = {"tableIds": [table_id("T1")], "date": TONIGHT, "slot": "19:30", "guests": 2, "seconds": 60}
CHANGE = {"idempotencyKey": "change-1"}
ROUTES = {route.operation_id: route for route in PARTNER_ROUTE_TABLE}
BODIES = [
    route.operation_id
    for route in PARTNER_ROUTE_TABLE
    if route.method in {"POST", "PATCH"} and route.operation_id != "rollWebhook"
]


@pytest.fixture
def settings():
    return with_settings(
        api={"rate_limit_per_minute": 1000, "unauthenticated_per_minute": 1000},
        webhooks={"allow_networks": ("127.0.0.1:9009",)},
    )


@pytest.fixture
async def document(running):
    status, found, _ = await running.call("GET", "/openapi.json")
    assert status == 200
    return found


async def ask(running, operation, id_=NOBODY, **kwargs):
    route = ROUTES[operation]
    deliveries = running.live.database.peek(lambda r: list(r.rows("SELECT id FROM delivery")))
    delivery = deliveries[0][0] if deliveries else NOBODY
    path = route.path.format(id=id_, delivery=delivery)
    return await running.call(route.method, path, **kwargs)


def assert_documented(document, operation, expected, answered):
    (status, code), (sent, body, headers) = expected, answered
    described = dict(operations(document))[operation]["responses"]
    assert (sent, body.get("code")) == (status, code)
    assert faults_of_answer(document, described[str(status)], headers, body) == []


async def booked(running):
    _, body, _ = await running.call("POST", "/v1/reservations", json=a_body())
    return body["serviceReservationId"]


async def inactive(running):
    made = await booked(running)
    await running.live.database.write(lambda tx: tx.execute("UPDATE venue SET status = 'inactive'"))
    return made


async def a_sixth(running):
    _, body, _ = await running.call("POST", "/v1/webhooks", json=RECEIVER)
    await running.call("DELETE", f"/v1/webhooks/{body['id']}")
    for number in range(5):
        await running.call("POST", "/v1/webhooks", json={"url": f"{RECEIVER['url']}/{number}"})
    return body["id"]


@pytest.mark.parametrize(
    ("operation", "status", "code", "body", "before"),
    [
        ("changeReservation", 400, "INVALID_EMAIL",
         {**CHANGE, "customer": {"name": "Salma", "email": "salma@"}}, booked),
        ("changeReservation", 404, "TABLE_NOT_FOUND", {**CHANGE, "tableId": NOBODY}, booked),
        ("changeReservation", 409, "VENUE_INACTIVE", {**CHANGE, "slot": "22:00"}, inactive),
        ("createHold", 400, "INVALID_SLOT", {**HOLD, "slot": "12:00"}, booked),
        ("createHold", 400, "INVALID_GUESTS", {**HOLD, "guests": 0}, booked),
        ("createHold", 404, "TABLE_NOT_FOUND", {**HOLD, "tableIds": [NOBODY]}, booked),
        ("createHold", 409, "VENUE_INACTIVE", HOLD, inactive),
        ("createHold", 409, "TABLE_NOT_BOOKABLE", {**HOLD, "tableIds": [table_id("T6")]}, booked),
        ("changeWebhook", 409, "TOO_MANY_ENDPOINTS", {"active": True}, a_sixth),
    ],
)  # fmt: skip
async def test_error_responses_match_the_document(
    running, document, operation, status, code, body, before
):
    answered = await ask(running, operation, await before(running), json=body)

    assert_documented(document, operation, (status, code), answered)


@pytest.mark.parametrize("operation", ROUTES)
async def test_responses_to_an_invalid_key_match_the_document(
    running, document, operation, monkeypatch
):
    scope = ROUTES[operation].scope
    poor = await a_key(running.live, tuple(s for s in SCOPES if s != scope)) if scope else ""
    revoked = await a_key(running.live)
    await running.live.database.write(
        lambda tx: tx.execute(
            "UPDATE api_key SET revoked_at = 1 WHERE last_four = ?", (revoked[-4:],)
        )
    )

    for key, expected in (
        ("svc_live_" + "0" * 48, (401, "UNAUTHORIZED")),
        (running.test_key, (401, "UNAUTHORIZED")),
        (revoked, (401, "KEY_REVOKED")),
        *([(poor, (403, "SCOPE_MISSING"))] if poor else []),
    ):
        answered = await ask(running, operation, key=key)
        assert_documented(document, operation, expected, answered)

    answered = await ask(running, operation, headers={"Host": "strange.example"})
    assert_documented(document, operation, (421, "MISDIRECTED"), answered)
    monkeypatch.setattr(RateLimit, "spend", _raising(RateLimited()))
    answered = await ask(running, operation)
    assert_documented(document, operation, (429, "RATE_LIMITED"), answered)


@pytest.mark.parametrize("operation", ROUTES)
@pytest.mark.parametrize(
    ("accident", "expected"),
    [(OSError("disk"), (500, "INTERNAL_ERROR")), (Unavailable(), (503, "UNAVAILABLE"))],
    ids=["accident", "stopping"],
)
async def test_responses_to_internal_errors_match_the_document(
    running, document, operation, accident, expected, monkeypatch
):
    body = {"createReservation": a_body(), "createWebhook": RECEIVER}.get(operation)
    monkeypatch.setattr("web.api.authentication.Gate._identify", _raising(accident))
    answered = await ask(running, operation, json=body)
    assert_documented(document, operation, expected, answered)


@pytest.mark.parametrize("operation", BODIES)
async def test_responses_to_an_invalid_body_match_the_document(running, document, operation):
    for raw, expected in ((b"[]", (400, "INVALID_JSON")), (b" " * 65537, (413, "BODY_TOO_LARGE"))):
        answered = await ask(running, operation, data=raw)
        assert_documented(document, operation, expected, answered)


def _raising(error):
    def fail(*_args, **_kwargs):
        raise error

    return fail
