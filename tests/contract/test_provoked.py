"""Errors that a partner provokes in the test environment, and samples of each event."""

import asyncio

import pytest

from tests.builders import a_body
from tests.conftest import Running
from web.api import provoked


async def ask(running: Running, prefix: str, wanted: str):
    headers = {"X-Test-Answer": wanted}
    return await running.call("POST", f"{prefix}/v1/reservations", json=a_body(), headers=headers)


@pytest.mark.parametrize(
    ("wanted", "status", "retry"),
    [("TABLE_TAKEN", 409, None), ("VENUE_INACTIVE", 409, None), ("RATE_LIMITED", 429, "60"),
     ("UNAVAILABLE", 503, "5")],
)  # fmt: skip
async def test_a_test_key_can_provoke_an_error_and_nothing_is_booked(
    running, wanted, status, retry
):
    answered, body, headers = await ask(running, "/test", wanted)
    assert (answered, body["code"], headers.get("Retry-After")) == (status, wanted, retry)
    assert (await running.call("GET", "/test/v1/reservations"))[1]["total"] == 0


async def test_a_provoked_slow_answer_is_late_and_correct(running, monkeypatch):
    monkeypatch.setattr(provoked, "SLOW_SECONDS", 0.2)
    started = asyncio.get_running_loop().time()
    assert (await ask(running, "/test", "slow"))[0] == 201
    assert asyncio.get_running_loop().time() - started >= 0.2


async def test_an_unknown_value_is_refused_and_live_ignores_the_header(running):
    status, body, _ = await ask(running, "/test", "TABLE TAKEN")
    assert (status, body["code"], body["field"]) == (400, "VALIDATION_ERROR", "X-Test-Answer")
    assert (await ask(running, "", "TABLE_TAKEN"))[0] == 201


async def test_an_email_to_the_domain_test_invalid_fails(running):
    customer = {"name": "Salma Idrissi", "email": "salma@Test.invalid"}
    _, made, _ = await running.call("POST", "/test/v1/reservations", json=a_body(customer=customer))
    assert made["notifications"]["email"] == "failed"
    path = f"/test/v1/reservations/{made['serviceReservationId']}"
    _, found, _ = await running.call("GET", path)
    assert found["notifications"]["email"] == "failed"
    body = {"slot": "22:00", "idempotencyKey": "1"}
    _, changed, _ = await running.call("PATCH", path, json=body)
    assert changed["notifications"]["email"] == "failed"
