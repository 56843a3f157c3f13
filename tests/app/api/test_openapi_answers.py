"""Every answer of the box matches the OpenAPI document, for each operation and each error."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from appliance.api_keys import SCOPES
from appliance.core.errors import RateLimited, Unavailable
from appliance.http.rate_limit import RateLimit
from tests.app.api.described import codes_of, faults_of_answer, operations, resolve
from tests.builders import TONIGHT, a_body, a_key, table_id
from tests.conftest import Running, with_settings
from web.api.openapi import build_document
from web.routes import PARTNER_ROUTE_TABLE

NOBODY = "00000000-0000-4000-8000-000000000000"
RECEIVER = {"url": "https://127.0.0.1:9009/hook"}  # no server listens there
HOLD = {"tableIds": [table_id("T1")], "date": TONIGHT, "slot": "19:30", "guests": 2, "seconds": 60}
EVENING = {"from": TONIGHT, "to": TONIGHT}
ROUTES = {route.operation_id: route for route in PARTNER_ROUTE_TABLE}
Before = Callable[[Running], Awaitable[str | None]]


async def nothing(_running: Running) -> None:
    """Change nothing."""


async def booked(running: Running) -> str:
    _, body, _ = await running.call("POST", "/v1/reservations", json=a_body())
    return body["serviceReservationId"]


async def booked_and_inactive(running: Running) -> str:
    reservation_id = await booked(running)
    await inactive(running)
    return reservation_id


async def booked_twice(running: Running) -> str:
    body = a_body(tableId=table_id("T2"), idempotencyKey="other")
    await running.call("POST", "/v1/reservations", json=body)
    return await booked(running)


async def held(running: Running) -> str:
    _, body, _ = await running.call("POST", "/v1/holds", json=HOLD)
    return body["holdId"]


async def twenty_held(running: Running) -> None:
    for day in range(1, 21):
        body = HOLD | {"date": f"2026-12-{day:02d}"}
        await running.call("POST", "/v1/holds", json=body)


async def booked_with_reference_and_mail(running: Running) -> None:
    customer = {"name": "Salma Idrissi", "email": "salma@example.com"}
    await running.call(
        "POST", "/v1/reservations", json=a_body(externalRef="POS-1", customer=customer)
    )


async def cancelled(running: Running) -> str:
    reservation_id = await booked(running)
    await running.call("DELETE", f"/v1/reservations/{reservation_id}")
    return reservation_id


async def registered(running: Running) -> str:
    _, body, _ = await running.call("POST", "/v1/webhooks", json=RECEIVER)
    return body["id"]


async def deactivated(running: Running) -> str:
    endpoint_id = await registered(running)
    await running.call("DELETE", f"/v1/webhooks/{endpoint_id}")
    return endpoint_id


async def tried(running: Running) -> str:
    endpoint_id = await registered(running)
    await running.call("POST", "/v1/webhooks/test", json={"endpointId": endpoint_id})
    return endpoint_id


async def five_registered(running: Running) -> None:
    for number in range(5):
        await running.call("POST", "/v1/webhooks", json={"url": f"{RECEIVER['url']}/{number}"})


async def a_sixth(running: Running) -> str:
    endpoint_id = await deactivated(running)
    await five_registered(running)
    return endpoint_id


async def inactive(running: Running) -> None:
    await running.live.database.write(lambda tx: tx.execute("UPDATE venue SET status = 'inactive'"))


async def prepaid(running: Running) -> None:
    await booked_with_reference_and_mail(running)
    await running.live.database.write(
        lambda tx: tx.execute("UPDATE venue SET reservation_mode = 'prepaid', policies = '{}'")
    )


@dataclass(frozen=True)
class Case:
    """A call and its documented answer."""

    operation: str
    status: int
    code: str | None = None
    body: Any = None
    query: dict[str, str] = field(default_factory=dict)
    before: Before = nothing

    def __str__(self) -> str:
        what = f"after_{self.before.__name__}" if self.code is None else self.code
        return f"{self.operation}-{self.status}-{what}"


def create(code: str, status: int = 400, before: Before = nothing, **changes: Any) -> Case:
    return Case("createReservation", status, code, body=a_body(**changes), before=before)


def change(**changes: Any) -> dict[str, Any]:
    body = {"idempotencyKey": "change-1", **changes}
    return {name: value for name, value in body.items() if value is not None}


def refused(code: str, status: int = 400, before: Before = booked, **changes: Any) -> Case:
    return Case("changeReservation", status, code, body=change(**changes), before=before)


def hold(status: int, code: str | None = None, before: Before = nothing, **changes: Any) -> Case:
    return Case("createHold", status, code, body=HOLD | changes, before=before)


CASES = [
    Case("getVenue", 200),
    Case("getVenue", 200, before=prepaid),
    Case("getAvailability", 200, query={"date": TONIGHT}),
    Case("getAvailability", 200, query={"date": TONIGHT, "slot": "19:30"}, before=booked),
    Case("getAvailability", 400, "INVALID_DATE", query={"date": "2026-02-30"}),
    Case("getAvailability", 400, "INVALID_SLOT", query={"date": TONIGHT, "slot": "19:31"}),
    Case("getAvailability", 400, "VALIDATION_ERROR", query={"date": TONIGHT, "time": "19:30"}),
    Case("getKey", 200),
    Case("getAvailabilityRange", 200, query={"from": TONIGHT, "to": "2026-12-21"}, before=booked),
    Case("getAvailabilityRange", 400, "INVALID_DATE", query={"from": TONIGHT}),
    Case("getAvailabilityRange", 400, "INVALID_GUESTS", query=EVENING | {"guests": "0"}),
    Case("getAvailabilityRange", 400, "VALIDATION_ERROR", query=EVENING | {"slot": "19:30"}),
    Case("listEvents", 200),
    Case("listEvents", 200, query={"types": "reservation.created"}, before=booked),
    Case("listEvents", 400, "VALIDATION_ERROR", query={"after": "then"}),
    Case("listReservations", 200),
    Case("listReservations", 200, before=booked_with_reference_and_mail),
    Case("listReservations", 200, query={"status": "cancelled"}, before=cancelled),
    Case("listReservations", 200, before=prepaid),
    Case("listReservations", 400, "INVALID_DATE", query={"from": TONIGHT, "to": "2026-11-20"}),
    Case("listReservations", 400, "VALIDATION_ERROR", query={"limit": "201"}),
    Case("listReservations", 200, query={"externalRef": "POS-1"}, before=booked),
    Case("getReservation", 200, before=booked),
    Case("getReservation", 404, "NOT_FOUND"),
    Case("createReservation", 201, body=a_body()),
    Case("createReservation", 200, body=a_body(), before=booked),
    Case("createReservation", 200, body=a_body(guests=3), before=booked),
    create("INVALID_DATE", date="2026-11-20"),
    create("INVALID_SLOT", slot="12:00"),
    create("INVALID_TABLE", tableId="T1"),
    create("INVALID_GUESTS", guests=4.5),
    create("GUESTS_OUT_OF_RANGE", guests=5),
    create("CUSTOMER_NAME_REQUIRED", customer={"phone": "0600000001"}),
    create("CUSTOMER_CONTACT_REQUIRED", customer={"name": "Salma"}),
    create("INVALID_EMAIL", customer={"name": "Salma", "email": "salma@"}),
    create("IDEMPOTENCY_KEY_REQUIRED", idempotencyKey=None),
    create("VALIDATION_ERROR", notes="n" * 501),
    create("TABLE_NOT_FOUND", 404, tableId=NOBODY),
    create("VENUE_INACTIVE", 409, inactive),
    create("TABLE_NOT_BOOKABLE", 409, tableId=table_id("T6")),
    create("TABLE_TAKEN", 409, booked, idempotencyKey="another"),
    create("HOLD_EXPIRED", 409, holdId=NOBODY),
    Case("changeReservation", 200, body=change(slot="22:00", guests=3), before=booked),
    Case(
        "changeReservation",
        200,
        body=change(additionalTableIds=[table_id("T2")], guests=4),
        before=booked,
    ),
    Case("changeReservation", 404, "NOT_FOUND", body=change()),
    refused("INVALID_DATE", date="2026-11-20"),
    refused("INVALID_SLOT", slot="12:00"),
    refused("INVALID_TABLE", tableId="T1"),
    refused("INVALID_GUESTS", guests=4.5),
    refused("GUESTS_OUT_OF_RANGE", guests=5),
    refused("CUSTOMER_NAME_REQUIRED", customer={"phone": "0600000001"}),
    refused("CUSTOMER_CONTACT_REQUIRED", customer={"name": "Salma"}),
    refused("INVALID_EMAIL", customer={"name": "Salma", "email": "salma@"}),
    refused("IDEMPOTENCY_KEY_REQUIRED", idempotencyKey=None),
    refused("VALIDATION_ERROR", guest=3),
    refused("TABLE_NOT_FOUND", 404, tableId=NOBODY),
    refused("VENUE_INACTIVE", 409, booked_and_inactive, slot="22:00"),
    refused("TABLE_NOT_BOOKABLE", 409, tableId=table_id("T6")),
    refused("TABLE_TAKEN", 409, booked_twice, tableId=table_id("T2")),
    refused("NOT_CHANGEABLE", 409, cancelled, guests=3),
    refused("CHANGED", 409, guests=3, ifUpdatedAt="2026-11-21T18:00:00Z"),
    hold(201),
    hold(400, "INVALID_DATE", date="2026-11-20"),
    hold(400, "INVALID_SLOT", slot="12:00"),
    hold(400, "INVALID_TABLE", tableIds=["T1"]),
    hold(400, "INVALID_GUESTS", guests=0),
    hold(400, "GUESTS_OUT_OF_RANGE", guests=5),
    hold(400, "VALIDATION_ERROR", seconds=601),
    hold(404, "TABLE_NOT_FOUND", tableIds=[NOBODY]),
    hold(409, "VENUE_INACTIVE", inactive),
    hold(409, "TABLE_NOT_BOOKABLE", tableIds=[table_id("T6")]),
    hold(409, "TABLE_TAKEN", booked),
    hold(409, "TOO_MANY_HOLDS", twenty_held),
    Case("deleteHold", 200, before=held),
    Case("deleteHold", 404, "NOT_FOUND"),
    Case("cancelReservation", 200, before=booked),
    Case("cancelReservation", 200, before=cancelled),
    Case("cancelReservation", 400, "VALIDATION_ERROR", query={"notifyCustomer": "no"}),
    Case("cancelReservation", 404, "NOT_FOUND"),
    Case("listWebhooks", 200),
    Case("listWebhooks", 200, query={"active": "true"}, before=registered),
    Case("listWebhooks", 400, "VALIDATION_ERROR", query={"active": "yes"}),
    Case("createWebhook", 201, body=RECEIVER),
    Case("createWebhook", 201, body={**RECEIVER, "events": ["webhook.test"]}),
    Case("createWebhook", 200, body=RECEIVER, before=registered),
    Case("createWebhook", 400, "INVALID_WEBHOOK_URL", body={"url": "https://127.0.0.1/"}),
    Case("createWebhook", 400, "INVALID_EVENT_TYPE", body={**RECEIVER, "events": []}),
    Case("createWebhook", 409, "TOO_MANY_ENDPOINTS", body=RECEIVER, before=five_registered),
    Case("getWebhook", 200, before=registered),
    Case("getWebhook", 404, "NOT_FOUND"),
    Case("changeWebhook", 200, body={"events": ["venue.updated"]}, before=registered),
    Case("changeWebhook", 400, "INVALID_WEBHOOK_URL", body={"url": "x"}, before=registered),
    Case("changeWebhook", 400, "INVALID_EVENT_TYPE", body={"events": []}, before=registered),
    Case("changeWebhook", 400, "VALIDATION_ERROR", body={"active": 1}, before=registered),
    Case("changeWebhook", 404, "NOT_FOUND", body={}),
    Case("changeWebhook", 409, "TOO_MANY_ENDPOINTS", body={"active": True}, before=a_sixth),
    Case("rollWebhook", 200, before=registered),
    Case("rollWebhook", 404, "NOT_FOUND"),
    Case("getDelivery", 200, before=tried),
    Case("getDelivery", 404, "NOT_FOUND"),
    Case("deleteWebhook", 200, before=registered),
    Case("deleteWebhook", 404, "NOT_FOUND"),
    Case("testWebhook", 202),
    Case("testWebhook", 202, before=registered),
    Case("testWebhook", 400, "VALIDATION_ERROR", body={"endpointId": 7}),
    Case("testWebhook", 404, "NOT_FOUND", body={"endpointId": NOBODY}),
    Case("listDeliveries", 200, before=tried),
    Case("listDeliveries", 200, before=registered),
    Case("listDeliveries", 400, "VALIDATION_ERROR", query={"state": "lost"}),
    Case("listDeliveries", 404, "NOT_FOUND"),
    Case("replayWebhook", 202, before=tried),
    Case("replayWebhook", 202, body={"since": "2026-11-21T18:00:00Z"}, before=tried),
    Case("replayWebhook", 202, body={"states": ["pending", "delivered"]}, before=tried),
    Case("replayWebhook", 400, "VALIDATION_ERROR", body={"since": "today"}, before=registered),
    Case("replayWebhook", 404, "NOT_FOUND"),
    Case("replayWebhook", 409, "ENDPOINT_INACTIVE", before=deactivated),
]
BODIES = [
    route.operation_id
    for route in PARTNER_ROUTE_TABLE
    if route.method in {"POST", "PATCH"} and route.operation_id != "rollWebhook"
]
OF_EVERY_OPERATION = {
    (401, "UNAUTHORIZED"),
    (401, "KEY_REVOKED"),
    (403, "SCOPE_MISSING"),
    (421, "MISDIRECTED"),
    (403, "HTTPS_REQUIRED"),  # over the network: tests/app/names/test_secure.py
    (429, "RATE_LIMITED"),
    (500, "INTERNAL_ERROR"),
    (503, "UNAVAILABLE"),
}
OF_EVERY_BODY = {(400, "INVALID_JSON"), (413, "BODY_TOO_LARGE")}


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


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_an_answer_is_what_the_document_says(running, document, case):
    made = await case.before(running)
    answered = await ask(running, case.operation, made or NOBODY, params=case.query, json=case.body)
    assert_documented(document, case.operation, (case.status, case.code), answered)


@pytest.mark.parametrize("operation", ROUTES)
async def test_a_bad_key_is_answered_as_documented(running, document, operation, monkeypatch):
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
async def test_our_faults_are_answered_as_documented(
    running, document, operation, accident, expected, monkeypatch
):
    body = {"createReservation": a_body(), "createWebhook": RECEIVER}.get(operation)
    monkeypatch.setattr("web.api.authentication.Gate._identify", _raising(accident))
    answered = await ask(running, operation, json=body)
    assert_documented(document, operation, expected, answered)


@pytest.mark.parametrize("operation", BODIES)
async def test_a_bad_body_is_answered_as_documented(running, document, operation):
    for raw, expected in ((b"[]", (400, "INVALID_JSON")), (b" " * 65537, (413, "BODY_TOO_LARGE"))):
        answered = await ask(running, operation, data=raw)
        assert_documented(document, operation, expected, answered)


def test_every_documented_answer_is_asked_for_by_a_test_above():
    """Every documented answer has a case in these tests."""
    document = build_document(PARTNER_ROUTE_TABLE, [])
    for operation, described in operations(document):
        seen = {(c.status, c.code) for c in CASES if c.operation == operation} | OF_EVERY_OPERATION
        if not ROUTES[operation].scope:
            seen -= {(403, "SCOPE_MISSING")}
        if operation in BODIES:
            seen |= OF_EVERY_BODY

        documented = set()
        for status, response in described["responses"].items():
            if status == "304":  # tests/contract/test_range.py
                continue
            codes = codes_of(resolve(document, response)) or {None}
            documented |= {(int(status), code) for code in codes}

        assert seen == documented, operation


def _raising(error):
    def fail(*_args, **_kwargs):
        raise error

    return fail
