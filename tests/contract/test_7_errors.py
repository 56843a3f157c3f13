"""Every 400, in the order of docs/decisions/requests-and-errors.md, and bad encodings."""

import json
import re

import pytest

from tests.builders import TONIGHT, a_body, table_id
from tests.conftest import Running

LONG = "x" * 121


async def post(running: Running, body: dict):
    status, answer, _ = await running.call("POST", "/v1/reservations", json=body)
    return status, answer


async def post_raw(running: Running, raw: bytes):
    status, answer, _ = await running.call(
        "POST", "/v1/reservations", data=raw, headers={"Content-Type": "application/json"}
    )
    return status, answer["code"]


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"date": None}, "INVALID_DATE", "date"),
        ({"date": "2026-02-30"}, "INVALID_DATE", "date"),
        ({"date": "٢٠٢٦-١١-٢١"}, "INVALID_DATE", "date"),
        ({"slot": "24:00"}, "INVALID_SLOT", "slot"),
        ({"slot": 1930}, "INVALID_SLOT", "slot"),
        ({"tableId": None}, "INVALID_TABLE", "tableId"),
        ({"tableId": "T1"}, "INVALID_TABLE", "tableId"),
        ({"guests": None}, "INVALID_GUESTS", "guests"),
        ({"guests": 0}, "INVALID_GUESTS", "guests"),
        ({"guests": True}, "INVALID_GUESTS", "guests"),
        ({"guests": "4"}, "INVALID_GUESTS", "guests"),
        ({"guests": 2.0}, "INVALID_GUESTS", "guests"),
        ({"customer": None}, "CUSTOMER_NAME_REQUIRED", "customer.name"),
        ({"customer": "Amina"}, "CUSTOMER_NAME_REQUIRED", "customer"),
        ({"customer": []}, "CUSTOMER_NAME_REQUIRED", "customer"),
        ({"customer": {"phone": "0600000001"}}, "CUSTOMER_NAME_REQUIRED", "customer.name"),
        ({"customer": {"name": "\u200b\u2060"}}, "CUSTOMER_NAME_REQUIRED", "customer.name"),
        ({"customer": {"name": "S"}}, "CUSTOMER_CONTACT_REQUIRED", "customer.email"),
        ({"customer": {"name": "S", "email": "", "phone": None}}, "CUSTOMER_CONTACT_REQUIRED",
         "customer.email"),
        ({"customer": {"name": "S", "email": "nobody"}}, "INVALID_EMAIL", "customer.email"),
        ({"customer": {"name": "S", "email": "a@b.c\r\nBcc: d@e.f"}}, "INVALID_EMAIL",
         "customer.email"),
        ({"idempotencyKey": None}, "IDEMPOTENCY_KEY_REQUIRED", "idempotencyKey"),
        ({"idempotencyKey": ""}, "IDEMPOTENCY_KEY_REQUIRED", "idempotencyKey"),
        ({"notes": "n" * 501}, "VALIDATION_ERROR", "notes"),
        ({"externalRef": LONG}, "VALIDATION_ERROR", "externalRef"),
        ({"idempotencyKey": LONG}, "VALIDATION_ERROR", "idempotencyKey"),
        ({"customer": {"name": "n" * 201, "phone": "0600000001"}}, "VALIDATION_ERROR",
         "customer.name"),
        ({"customer": {"name": "S", "phone": "12345"}}, "VALIDATION_ERROR", "customer.phone"),
        ({"customer": {"name": "S", "email": "s@a.co", "phone": 7}}, "VALIDATION_ERROR",
         "customer.phone"),
        ({"customer": {"name": "S", "email": "s@a.co", "language": "de"}}, "VALIDATION_ERROR",
         "customer.language"),
        ({"notifyCustomer": "yes"}, "VALIDATION_ERROR", "notifyCustomer"),
    ],
)  # fmt: skip
async def test_an_invalid_body_is_refused_with_the_field_and_stores_nothing(
    running, changes, code, field
):
    status, body = await post(running, a_body(**changes))
    assert (status, body["code"], body["field"]) == (400, code, field)
    assert body["error"]
    assert body["error_en"]
    _, listed, _ = await running.call("GET", "/v1/reservations")
    assert listed["total"] == 0


@pytest.mark.parametrize(
    "changes",
    [{"notes": "n" * 500}, {"externalRef": "x" * 120}, {"idempotencyKey": "x" * 120},
     {"customer": {"name": "n" * 200, "phone": "123456"}},
     {"customer": {"name": "S", "phone": "+212 (6) 00-00.00 01"}},
     {"customer": {"name": "S", "email": "o'hara+tag@mail.example.co"}},
     {"tableId": table_id("T1").upper()}, {"notes": None, "slot": None},
     {"somethingNew": {"is": "ignored"}}],
)  # fmt: skip
async def test_a_body_exactly_at_its_limits_is_accepted(running, changes):
    status, _ = await post(running, a_body(**changes))
    assert status == 201


SLOTS_OF_SATURDAY = ("19:30", "22:00")


@pytest.mark.parametrize(
    "slot",
    ["22:30", "12:00"],  # brunch, on Sundays only
)
async def test_an_unknown_slot_is_refused_with_the_list_of_slots(running, slot):
    query = {"date": TONIGHT, "slot": slot}
    _, asked, _ = await running.call("GET", "/v1/availability", params=query)
    _, booked = await post(running, a_body(slot=slot))
    for body in (asked, booked):
        assert (body["code"], body["field"]) == ("INVALID_SLOT", "slot")
        for text in (body["error"], body["error_en"]):
            assert all(start in text for start in (slot, *SLOTS_OF_SATURDAY))


async def test_each_error_of_a_slot_has_its_own_message(running):
    answers = [await post(running, a_body(slot=slot)) for slot in ("7pm", "21:30", "12:00")]
    assert {body["code"] for _, body in answers} == {"INVALID_SLOT"}
    assert len({body["error_en"].replace("21:30", "12:00") for _, body in answers}) == 3


async def test_an_unknown_table_is_not_found_and_the_error_names_the_field(running):
    status, body = await post(running, a_body(tableId="018f0000-0000-7000-8000-000000000000"))
    assert (status, body["code"], body["field"]) == (404, "TABLE_NOT_FOUND", "tableId")


VALID = json.dumps(a_body()).encode()


@pytest.mark.parametrize(
    ("raw", "headers", "place"),
    [
        (b"\xef\xbb\xbf" + VALID, {}, ""),
        (VALID.decode().encode("utf-16"), {}, ""),
        (VALID.decode().encode("utf-32"), {}, ""),
        (VALID, {"Content-Encoding": "gzip"}, ""),
        (b'{"a": "\xe9"}', {}, "8"),
        (b'{"a": 1,\n "b" 2}', {}, "6"),
        (b'{"x": {"a": 1, "b": 2, "c": 3, "b": 4}}', {}, '"b"'),
        (b'{"\\ud800": 1, "\\ud800": 2}', {}, '"\\ud800"'),
    ],
)
async def test_the_error_for_invalid_json_gives_the_position(running, raw, headers, place):
    status, body, _ = await running.call("POST", "/v1/reservations", data=raw, headers=headers)
    assert (status, body["code"]) == (400, "INVALID_JSON")
    assert body["error"] != body["error_en"]
    assert place in body["error_en"]
    assert place in body["error"]


async def test_a_body_with_the_identity_encoding_is_accepted(running):
    plain = {"Content-Encoding": "identity"}
    status, _, _ = await running.call("POST", "/v1/reservations", data=VALID, headers=plain)
    assert status == 201


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_64_kib_is_too_large(running, chunked):
    raw = VALID[:-1] + b" " * 65536 + b"}"

    async def pieces():
        for start in range(0, len(raw), 8192):
            yield raw[start : start + 8192]

    assert await post_raw(running, pieces() if chunked else raw) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_an_unknown_path_is_not_found_even_without_a_key(running, prefix):
    async with running.client.get(f"{prefix}/v1/nothing") as response:
        body = await response.json()
    assert (response.status, body["code"]) == (404, "NOT_FOUND")
    assert set(body) == {"error", "error_en", "code"}


async def test_a_wrong_method_gets_the_list_of_allowed_ones(running):
    async with running.client.put("/v1/reservations") as response:
        body = await response.json()
    assert (response.status, body["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert response.headers["Allow"] == "GET, HEAD, POST"
    async with running.client.delete("/v1/webhooks/test") as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST")


async def test_head_is_answered_like_get_without_the_body(running):
    headers = {"Authorization": f"Bearer {running.live_key}"}
    async with running.client.head("/v1/venue", headers=headers) as response:
        assert (response.status, await response.read()) == (200, b"")
    async with running.client.head("/v1/venue") as response:
        assert response.status == 401


@pytest.mark.parametrize("sent", ["", "a b", "é", "x" * 65, "svc=1", None])
@pytest.mark.parametrize(
    ("path", "expected"), [("/v1/venue", 200), ("/test/v1/venue", 200), ("/v1/nowhere", 404)]
)
async def test_every_answer_has_its_own_request_id(running, path, expected, sent):
    headers = {} if sent is None else {"X-Request-ID": sent}
    ids = []
    for _ in range(2):
        status, _, answered = await running.call("GET", path, headers=headers)
        assert status == expected
        ids.append(answered["X-Request-ID"])
    assert len({*ids, sent}) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9._~-]{1,64}", each) for each in ids)


async def test_a_sent_request_id_is_returned_and_pages_have_none(running):
    for path in ("/v1/venue", "/v1/nowhere", "/test/v1/reservations"):
        _, _, headers = await running.call("GET", path, headers={"X-Request-ID": "~A.b-C_9"})
        assert headers["X-Request-ID"] == "~A.b-C_9"
    async with running.client.get("/health", headers={"X-Request-ID": "a"}) as response:
        assert "X-Request-ID" not in response.headers


async def test_every_answer_carries_the_security_headers(running):
    for method, path in (("GET", "/v1/venue"), ("GET", "/v1/nothing"), ("PUT", "/v1/venue")):
        _, _, headers = await running.call(method, path)
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
