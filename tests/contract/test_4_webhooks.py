"""`/v1/webhooks*` over HTTP: sections 2.8 and 4."""

import asyncio
import json

import pytest

from tests.conftest import Running, with_settings
from tests.contract.calls import UNKNOWN, URL, register, registered

EVENT_TYPES = [
    "reservation.created", "reservation.confirmed", "reservation.cancelled",
    "reservation.declined", "reservation.checked_in", "webhook.test",
]  # fmt: skip
OPTIONAL_TYPES = ["reservation.updated", "venue.updated", "reservation.checkin_reverted"]


@pytest.fixture
def settings():
    return with_settings(
        api={"rate_limit_per_minute": 1000}, webhooks={"allow_networks": ("127.0.0.0/8",)}
    )


async def test_registering_an_endpoint_returns_its_secret(running):
    status, endpoint, _ = await register(running, events=["reservation.created"])

    assert status == 201
    assert set(endpoint) == {"id", "url", "events", "active", "createdAt", "secret"}
    assert endpoint["url"] == URL
    assert endpoint["events"] == ["reservation.created"]
    assert endpoint["active"] is True
    assert endpoint["createdAt"] == "2026-11-21T19:00:00.000Z"
    assert endpoint["secret"].startswith("whsec_")
    assert len(endpoint["secret"]) == 6 + 43


async def test_the_list_shows_everything_but_the_secret(running):
    created = await registered(running)
    secret = created.pop("secret")

    status, listed, _ = await running.call("GET", "/v1/webhooks")

    assert status == 200
    assert listed == {
        "items": [{**created, "createdByThisKey": True}],
        "events": EVENT_TYPES,
        "optionalEvents": OPTIONAL_TYPES,
    }
    assert secret[6:] not in json.dumps(listed)


async def test_omitted_or_null_events_mean_all_six(running):
    assert (await registered(running))["events"] == EVENT_TYPES
    other = await registered(running, url=f"{URL}/2", events=None)
    assert other["events"] == EVENT_TYPES


@pytest.mark.parametrize(
    ("events", "field"),
    [
        ([], "events"),
        ("reservation.created", "events"),
        ({}, "events"),
        (1, "events"),
        (["reservation.created", "reservation.moved"], "events[1]"),
        (["Reservation.Created"], "events[0]"),
        ([None], "events[0]"),
        ([["reservation.created"]], "events[0]"),
    ],
)
async def test_empty_or_unknown_events_are_refused(running, events, field):
    status, body, _ = await register(running, events=events)
    assert (status, body["code"], body["field"]) == (400, "INVALID_EVENT_TYPE", field)
    assert all(name in body["error"] and name in body["error_en"] for name in EVENT_TYPES)


@pytest.mark.parametrize(
    "url",
    [None, 1, "", "receiver.example", "http://93.184.216.34/", "https://u:p@93.184.216.34/",
     "https://93.184.216.34/#x", "https://10.0.0.1/", "https://169.254.169.254/",
     "https://[::1]/", "https://93.184.216.34/" + "a" * 2048],
)  # fmt: skip
async def test_an_invalid_url_is_refused_in_live(running, url):
    status, body, _ = await register(running, url=url)
    assert (status, body["code"], body["field"]) == (400, "INVALID_WEBHOOK_URL", "url")
    assert set(body) == {"error", "error_en", "code", "field"}
    assert (await running.call("GET", "/v1/webhooks"))[1]["items"] == []


async def test_plain_http_and_the_owners_exceptions_are_accepted_in_test(running):
    url = "http://127.0.0.1:9000/hook"
    assert (await registered(running, "/test", url=url))["url"] == url


async def test_the_sixth_active_endpoint_is_refused_until_one_is_deactivated(running):
    endpoints = [await registered(running, url=f"{URL}/{n}") for n in range(5)]

    status, body, _ = await register(running)
    assert (status, body["code"]) == (409, "TOO_MANY_ENDPOINTS")
    await running.call("DELETE", f"/v1/webhooks/{endpoints[0]['id']}")

    assert (await register(running))[0] == 201
    _, listed, _ = await running.call("GET", "/v1/webhooks")
    assert len(listed["items"]) == 6


async def test_of_twenty_simultaneous_registrations_five_succeed(running):
    urls = [f"{URL}/{number}" for number in range(20)]
    answers = await asyncio.gather(*(register(running, url=url) for url in urls))
    assert sorted(status for status, _, _ in answers) == [201] * 5 + [409] * 15
    _, listed, _ = await running.call("GET", "/v1/webhooks")
    assert sum(item["active"] for item in listed["items"]) == 5


async def test_twenty_simultaneous_registrations_of_one_url_create_one_endpoint(running):
    answers = await asyncio.gather(*(register(running) for _ in range(20)))

    assert sorted(status for status, _, _ in answers) == [200] * 19 + [201]
    assert len({body["id"] for _, body, _ in answers}) == 1
    assert [status for status, body, _ in answers if "secret" in body] == [201]
    _, listed, _ = await running.call("GET", "/v1/webhooks")
    assert len(listed["items"]) == 1


async def test_registering_a_url_again_replaces_its_events(running):
    first = await registered(running, events=["reservation.created"])
    events = ["reservation.cancelled", "reservation.updated"]

    status, again, headers = await register(running, events=events)

    del first["secret"]
    assert (status, again) == (200, {**first, "events": events})
    assert headers["Existing-Endpoint"] == "true"
    assert (await register(running))[1]["events"] == events  # they stay if omitted


async def test_a_secret_is_never_shown_a_second_time_not_even_to_a_successor(running, venue):
    endpoint = await registered(running)
    await venue.roll_secret(endpoint["id"])

    for key in (running.live_key, await venue.rotate_key()):
        status, again, headers = await running.call(
            "POST", "/v1/webhooks", key=key, json={"url": URL}
        )
        assert (status, again["id"], "secret" in again) == (200, endpoint["id"], False)
        assert headers["Existing-Endpoint"] == "true"


async def test_the_url_of_another_key_or_of_a_deactivated_endpoint_creates_a_new_endpoint(
    running, venue
):
    first = await registered(running)
    _, others, _ = await running.call(
        "POST", "/v1/webhooks", key=await venue.issue_key(), json={"url": URL}
    )
    await running.call("DELETE", f"/v1/webhooks/{first['id']}")
    second = await registered(running)
    assert len({first["id"], others["id"], second["id"]}) == 3
    assert len({first["secret"], others["secret"], second["secret"]}) == 3


async def test_deactivating_is_idempotent_and_accepts_the_id_in_upper_case(running):
    endpoint = await registered(running)
    for spelling in (endpoint["id"], endpoint["id"].upper()):
        status, body, _ = await running.call("DELETE", f"/v1/webhooks/{spelling}")
        assert (status, body) == (200, {"id": endpoint["id"], "active": False})
    _, listed, _ = await running.call("GET", "/v1/webhooks")
    assert [item["active"] for item in listed["items"]] == [False]


@pytest.mark.parametrize("endpoint_id", [UNKNOWN, "nonsense", "1", "%00"])
async def test_an_unknown_endpoint_cannot_be_deactivated(running, endpoint_id):
    status, body, _ = await running.call("DELETE", f"/v1/webhooks/{endpoint_id}")
    assert (status, body["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize(("active", "expected"), [("true", {1}), ("false", {0}), (None, {0, 1})])
async def test_the_list_can_be_limited_to_active_endpoints(running, active, expected):
    ids = [(await registered(running, url=f"{URL}/{number}"))["id"] for number in range(2)]
    await running.call("DELETE", f"/v1/webhooks/{ids[0]}")
    query = {} if active is None else {"active": active}

    _, listed, _ = await running.call("GET", "/v1/webhooks", params=query)

    assert {item["id"] for item in listed["items"]} == {ids[number] for number in expected}


@pytest.mark.parametrize("query", [{"active": "1"}, {"active": ""}, {"activ": "true"}])
async def test_an_unknown_parameter_of_the_list_is_refused(running, query):
    status, body, _ = await running.call("GET", "/v1/webhooks", params=query)
    assert (status, body["code"], body["field"]) == (400, "VALIDATION_ERROR", *query)


async def test_the_endpoints_of_the_environments_are_separate(running):
    endpoint = await registered(running)
    _, listed, _ = await running.call("GET", "/test/v1/webhooks")
    status, _, _ = await running.call("DELETE", f"/test/v1/webhooks/{endpoint['id']}")
    assert listed["items"] == []
    assert status == 404


async def try_out(running: Running, **kwargs):
    return await running.call("POST", "/test/v1/webhooks/test", **kwargs)


async def test_a_test_event_without_a_body_is_sent_to_every_active_endpoint(running, receiver):
    for path in ("a", "b", "c"):
        url = f"http://127.0.0.1:{receiver.port}/{path}"
        endpoint = await registered(running, "/test", url=url, events=["reservation.declined"])
    await running.call("DELETE", f"/test/v1/webhooks/{endpoint['id']}")

    status, body, _ = await try_out(running)
    requests = await receiver.got(2)

    assert status == 202
    assert body["queued"] == len(body["deliveryIds"]) == 2
    assert {r.id for r in requests} == set(body["deliveryIds"])
    assert {r.line.split()[1] for r in requests} == {"/a", "/b"}
    assert {r.headers["x-service-event"] for r in requests} == {"webhook.test"}


async def test_an_inactive_endpoint_gets_no_test_event(running):
    endpoint = await registered(running, "/test")
    await running.call("DELETE", f"/test/v1/webhooks/{endpoint['id']}")
    json = {"endpointId": endpoint["id"], "type": None}  # null means the same as a missing member
    status, body, _ = await try_out(running, json=json)
    assert (status, body) == (202, {"queued": 0, "deliveryIds": []})


@pytest.mark.parametrize(
    ("endpoint_id", "status", "code"),
    [(UNKNOWN, 404, "NOT_FOUND"), ("nonsense", 404, "NOT_FOUND"), ("", 404, "NOT_FOUND"),
     (1, 400, "VALIDATION_ERROR"), ({}, 400, "VALIDATION_ERROR")],
)  # fmt: skip
async def test_a_test_event_for_an_unknown_or_invalid_endpoint_is_refused(
    running, endpoint_id, status, code
):
    answered, body, _ = await try_out(running, json={"endpointId": endpoint_id})
    assert (answered, body["code"]) == (status, code)
    assert body.get("field") == (None if status == 404 else "endpointId")


async def test_a_test_event_with_an_unknown_member_is_refused_and_not_sent(running):
    endpoint = await registered(running, "/test")
    status, body, _ = await try_out(running, json={"endpointID": endpoint["id"]})
    assert (status, body["code"], body["field"]) == (400, "VALIDATION_ERROR", "endpointID")
    path = f"/test/v1/webhooks/{endpoint['id']}/deliveries"
    assert (await running.call("GET", path))[1]["items"] == []


@pytest.mark.parametrize("event_type", EVENT_TYPES)
async def test_a_test_key_can_send_a_valid_sample_of_each_event_type(running, receiver, event_type):
    await registered(running, "/test", url=receiver.url, events=["webhook.test"])
    status, body, _ = await try_out(running, json={"type": event_type})
    [request] = await receiver.got(1)

    assert (status, body["deliveryIds"]) == (202, [request.id])
    assert request.headers["x-service-event"] == request.body["type"] == event_type
    sample = request.reservation
    ended = {"reservation.cancelled": "cancelled", "reservation.declined": "declined"}
    assert sample["status"] == ended.get(event_type, "confirmed")
    assert (sample["checkedInAt"] is not None) == (event_type == "reservation.checked_in")


@pytest.mark.parametrize(
    ("path", "event_type"),
    [("/v1", "reservation.checked_in"), ("/v1", 1), ("/test/v1", "reservation.moved"),
     ("/test/v1", ""), ("/test/v1", [])],
)  # fmt: skip
async def test_live_refuses_reservation_samples_and_test_refuses_unknown_event_types(
    running, path, event_type
):
    status, body, _ = await running.call("POST", f"{path}/webhooks/test", json={"type": event_type})
    assert (status, body["code"], body["field"]) == (400, "VALIDATION_ERROR", "type")
