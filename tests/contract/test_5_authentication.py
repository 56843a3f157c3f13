"""API keys, scopes and rate limits (interface, sections 5 and 8)."""

from pathlib import Path

import pytest

from tests.clocks import StoppedClock
from tests.conftest import running_box, with_settings
from tests.contract.venue import Venue

ID = "2f1c8d5e-0000-4000-8000-000000000000"
SCOPES = {
    "venue:read": [("GET", "/v1/venue")],
    "availability:read": [("GET", "/v1/availability")],
    "reservations:read": [("GET", "/v1/reservations"), ("GET", f"/v1/reservations/{ID}")],
    "reservations:write": [
        ("POST", "/v1/reservations"), ("PATCH", f"/v1/reservations/{ID}"),
        ("DELETE", f"/v1/reservations/{ID}"), ("POST", "/v1/holds"), ("DELETE", f"/v1/holds/{ID}"),
    ],
    "webhooks:manage": [
        ("GET", "/v1/webhooks"), ("POST", "/v1/webhooks"), ("DELETE", f"/v1/webhooks/{ID}"),
        ("POST", "/v1/webhooks/test"), ("GET", f"/v1/webhooks/{ID}/deliveries"),
        ("POST", f"/v1/webhooks/{ID}/replay"),
    ],
}  # fmt: skip
CALLS = [(method, path, scope) for scope, calls in SCOPES.items() for method, path in calls]


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer svc_live_" + "0" * 48, "Bearer svc_live_" + "0" * 47,
     "Basic dXNlcjpwYXNz", "Bearer svc_live_\udcff", "svc_live_" + "0" * 48],
)  # fmt: skip
async def test_a_missing_or_unknown_key_is_unauthorized(running, header):
    headers = {} if header is None else {"Authorization": header}
    async with running.client.get("/v1/venue", headers=headers) as response:
        body = await response.json()
    assert (response.status, body["code"]) == (401, "UNAUTHORIZED")
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(("method", "path", "scope"), CALLS)
@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_every_call_needs_a_key(running, prefix, method, path, scope):
    async with running.client.request(method, prefix + path, data=b"{broken") as response:
        body = await response.json()
    assert (response.status, body["code"]) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize(("method", "path", "scope"), CALLS)
async def test_each_call_needs_exactly_its_own_scope(running, venue, method, path, scope):
    without = await venue.issue_key(*SCOPES.keys() - {scope})
    only = await venue.issue_key(scope)
    refused, body, _ = await running.call(method, path, key=without, data=b"{broken")
    allowed, _, _ = await running.call(method, path, key=only)
    assert (refused, body["code"]) == (403, "SCOPE_MISSING")
    assert allowed not in {401, 403}


async def test_a_key_of_the_other_environment_is_unauthorized(running):
    on_live, live, _ = await running.call("GET", "/v1/venue", key=running.test_key)
    on_test, test, _ = await running.call("GET", "/test/v1/venue", key=running.live_key)
    assert (on_live, live["code"]) == (401, "UNAUTHORIZED")
    assert (on_test, test["code"]) == (401, "UNAUTHORIZED")
    _, unknown, _ = await running.call("GET", "/v1/venue", key="svc_live_" + "0" * 48)
    assert live["error"] == test["error"] != unknown["error"]


@pytest.fixture
async def limited(tmp_path: Path, clock: StoppedClock):
    async with running_box(tmp_path, clock, with_settings()) as running:
        yield running


async def test_the_sixty_first_request_in_a_minute_is_refused(limited):
    other = await Venue(limited).issue_key()
    statuses = [(await limited.call("GET", "/v1/venue"))[0] for _ in range(61)]
    status, body, headers = await limited.call("GET", "/v1/venue")
    assert statuses == [200] * 60 + [429]
    assert (status, body["code"], headers["Retry-After"]) == (429, "RATE_LIMITED", "60")
    assert (await limited.call("GET", "/v1/venue", key=other))[0] == 200


async def test_the_rate_limit_is_a_sliding_minute_that_ignores_refused_calls(limited):
    for _ in range(30):
        await limited.call("GET", "/v1/venue")
    limited.clock.advance(40)
    for _ in range(35):
        await limited.call("GET", "/v1/venue")
    limited.clock.advance(20)

    statuses = [(await limited.call("GET", "/v1/venue"))[0] for _ in range(31)]

    assert statuses == [200] * 30 + [429]


async def test_the_rate_is_checked_before_the_scope(limited):
    key = await Venue(limited).issue_key("availability:read")
    refused = [(await limited.call("GET", "/v1/venue", key=key))[0] for _ in range(61)]
    assert refused == [403] * 60 + [429]


async def test_calls_without_a_valid_key_are_limited_by_address_and_not_charged_to_a_key(limited):
    wrong = "svc_live_" + "0" * 48
    statuses = [(await limited.call("GET", "/v1/venue", key=wrong))[0] for _ in range(61)]
    status, _, _ = await limited.call("GET", "/v1/venue")
    assert statuses == [401] * 60 + [429]
    assert status == 200
