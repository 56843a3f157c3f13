"""Malformed requests: each kind gets its own error, and nothing is stored."""

import pytest

GOOD = {"scanId": "one", "code": "whatever it is"}


ARRIVALS = [{"arrivals": value} for value in (0, -1, 1000, True, 1.5, "2")]
OVERRIDES = [{"override": value} for value in
             ({}, {"reason": " "}, {"reason": 7}, {"reason": "x" * 201}, "because")]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "field"),
    [*((changes, "arrivals") for changes in ARRIVALS),
     *((changes, "override.reason") for changes in OVERRIDES), ({"scanId": None}, "scanId"),
     ({"scanId": ""}, "scanId"), ({"scanId": 7}, "scanId"), ({"scanId": "undo:1"}, "scanId"),
     ({"scanId": "a b"}, "scanId"), ({"scanId": "x" * 65}, "scanId"), ({"code": None}, "code"),
     ({"code": ""}, "code"), ({"code": "  \n"}, "code"), ({"code": ["SVC-7K2M"]}, "code"),
     ({"code": "x" * 2049}, "code"), ({"simulate": "true"}, "simulate"),
     ({"simulate": 1}, "simulate"), ({"at": "yesterday"}, "at"),
     ({"at": "2026-11-21T19:00:00"}, "at"), ({"at": 1795287600}, "at"),
     ({"reservationId": "SVC-7K2M"}, "reservationId"), ({"reservationId": 7}, "reservationId")],
)  # fmt: skip
async def test_an_invalid_member_is_named_in_the_error(door, changes, field):
    path = "/check-ins" if field == "reservationId" else "/scans"
    status, refusal = await door.call("POST", path, GOOD | changes)

    assert (status, refusal["code"], refusal["field"]) == (400, "VALIDATION_ERROR", field)
    assert await door.rows("SELECT * FROM scan_log") == []


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'{"scanId": NaN}', b'"\xff"', b'{"a":1,"a":1}'])
@pytest.mark.parametrize("path", ["/scans", "/check-ins", "/pair"])
async def test_a_body_that_is_not_an_object_is_refused(door, raw, path):
    status, refusal = await door.call("POST", path, data=raw)

    assert (status, refusal["code"]) == (400, "INVALID_JSON")


@pytest.mark.parametrize("path", ["/scans", "/check-ins", "/pair", "/scans/one/undo"])
async def test_a_body_over_64_kib_is_refused(door, path):
    status, refusal = await door.call("POST", path, data=b'{"code":"' + b"x" * 65_536 + b'"}')

    assert (status, refusal["code"]) == (413, "BODY_TOO_LARGE")
