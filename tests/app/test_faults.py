"""Failures of the box itself, such as an exception or a full disk, and the secrets it stores."""

import json

import pytest

from appliance.core.errors import Unavailable
from appliance.core.tokens import Keyring
from appliance.reservations.create import settle_email
from tests.builders import a_body
from tests.conftest import MASTER_KEY, running_box, with_settings
from tests.contract.calls import registered


async def test_an_unexpected_exception_is_an_internal_error_without_details(
    running, monkeypatch, caplog
):
    def explode(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("web.api.venue._read_venue", explode)

    named = {"X-Request-ID": "POS-20481.1"}
    status, body, headers = await running.call("GET", "/v1/venue", headers=named)

    assert (status, body["code"]) == (500, "INTERNAL_ERROR")
    assert "secret" not in json.dumps(body)
    assert headers["X-Request-ID"] == "POS-20481.1"
    [line] = [line for line in caplog.text.splitlines() if "GET /v1/venue" in line]
    assert "POS-20481.1" in line


async def test_on_a_full_disk_calls_are_unavailable_and_nothing_is_acknowledged(running):
    connection = running.live.database._writer_connection
    connection.pragma("max_page_count", connection.pragma("page_count"))
    statuses = []
    for day in range(1, 28):
        body = a_body(date=f"2026-12-{day:02d}", idempotencyKey=f"k{day}", notes="n" * 500)
        status, answer, headers = await running.call("POST", "/v1/reservations", json=body)
        statuses.append(status)
    assert statuses[-1] == 503
    assert answer["code"] == "UNAVAILABLE"
    assert headers["Retry-After"] == "5"

    connection.pragma("max_page_count", 2**30)
    status, _, _ = await running.call("POST", "/v1/reservations", json=a_body())
    _, listed, _ = await running.call("GET", "/v1/reservations")
    assert status == 201
    assert listed["total"] == statuses.count(201) + 1


async def test_a_committed_booking_is_never_answered_as_not_recorded(running, monkeypatch):
    database, body = running.live.database, a_body(customer={"name": "S", "email": "s@a.example"})
    write = database.write

    async def fill_up(action, *args, **keywords):
        if action is settle_email:
            raise Unavailable
        return await write(action, *args, **keywords)

    with monkeypatch.context() as full_disk:
        full_disk.setattr(database, "write", fill_up)
        status, answer, _ = await running.call("POST", "/v1/reservations", json=body)
    replayed = await running.call("POST", "/v1/reservations", json=body)

    assert (status, answer["notifications"]["email"]) == (201, "failed")
    assert replayed[:2] == (200, answer)


async def test_an_endpoint_secret_is_stored_encrypted_for_its_environment(running):
    secret = (await registered(running))["secret"].encode()
    stored = running.live.database.peek(lambda r: r.value("SELECT secret FROM endpoint"))
    assert secret not in stored
    assert Keyring(MASTER_KEY, "live").unwrap(stored) == secret
    with pytest.raises(ValueError, match="wrapped"):
        Keyring(MASTER_KEY, "test").unwrap(stored)


async def test_only_the_hash_and_the_ends_of_a_key_are_stored(running):
    await running.call("GET", "/v1/venue")
    path = running.live.database.path
    stored = [path, path.with_name("live.db-wal")]

    secret = running.live_key.encode()
    raw = b"".join(file.read_bytes() for file in stored)

    assert secret not in raw
    assert secret[9:] not in raw
    assert bytes.fromhex(running.live_key.rpartition("_")[2]) not in raw


async def test_the_address_from_a_trusted_proxy_is_used(tmp_path, clock):
    settings = with_settings(server={"trusted_proxies": ("127.0.0.0/8",)})
    wrong = "svc_live_" + "0" * 48
    async with running_box(tmp_path, clock, settings) as running:
        for _ in range(61):
            first, _, _ = await running.call(
                "GET", "/v1/venue", key=wrong, headers={"X-Forwarded-For": "1.1.1.1, 192.0.2.1"}
            )
        other, _, _ = await running.call(
            "GET", "/v1/venue", key=wrong, headers={"X-Forwarded-For": "1.1.1.1, 192.0.2.2"}
        )

    assert (first, other) == (429, 401)
