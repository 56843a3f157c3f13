"""`GET /v1/availability/range`, ETags, the rate limit headers, and `GET /v1/key`."""

import pytest

from appliance.api_keys import list_keys
from tests.builders import TONIGHT, VENUE_ID, a_body, a_key, table_id
from tests.conftest import Running, with_settings

T1, T2, T3, T4, T5 = (table_id(f"T{number}") for number in range(1, 6))
RANGE = f"/v1/availability/range?from={TONIGHT}&to=2026-11-22"


async def read(running: Running, path: str = RANGE) -> dict:
    status, body, _ = await running.call("GET", path)
    assert status == 200
    return body


async def ask(running: Running, path: str, tag: str = "", key: str | None = None):
    headers = {"Authorization": f"Bearer {key or running.live_key}", "If-None-Match": tag}
    async with running.client.get(path, headers=headers) as response:
        return response.status, await response.read(), response.headers


async def test_each_evening_has_its_slots_with_their_free_tables(running):
    for number, changes in enumerate((
        {}, {"tableId": T2, "slot": None}, {"tableId": T3, "date": "2026-11-22", "slot": "12:00"},
    )):  # fmt: skip
        body = a_body(idempotencyKey=str(number), **changes)
        body["slot"] = changes.get("slot", "19:30")
        await running.call("POST", "/v1/reservations", json=body)

    assert await read(running) == {
        "from": TONIGHT,
        "to": "2026-11-22",
        "days": [
            {"date": TONIGHT, "closed": False, "slots": [
                {"slot": "19:30", "free": [T3, T4, T5]},
                {"slot": "22:00", "free": [T1, T3, T4, T5]},
            ]},
            {"date": "2026-11-22", "closed": False, "slots": [
                {"slot": "19:30", "free": [T1, T2, T3, T4, T5]},
                {"slot": "22:00", "free": [T1, T2, T3, T4, T5]},
                {"slot": "12:00", "free": [T1, T2, T4, T5]},
            ]},
        ],
    }  # fmt: skip


async def test_the_range_agrees_with_the_availability_of_each_slot(running):
    await running.live.database.write(lambda tx: tx.execute(
        "UPDATE slot SET start = '00:30', \"end\" = '03:00' WHERE start = '19:30'"))  # fmt: skip
    await running.call("POST", "/v1/reservations", json=a_body(slot="22:00"))
    for day in (await read(running))["days"]:
        for slot in day["slots"]:
            path = f"/v1/availability?date={day['date']}&slot={slot['slot']}"
            tables = (await read(running, path))["tables"]
            assert [table["id"] for table in tables if table["available"]] == slot["free"]


@pytest.mark.parametrize(("guests", "free"), [(1, 0), (2, 5), (4, 5), (5, 0)])
async def test_only_tables_that_seat_the_party_are_listed_as_free(running, guests, free):
    (day, _) = (await read(running, f"{RANGE}&guests={guests}"))["days"]
    assert len(day["slots"][0]["free"]) == free


async def test_on_closed_and_past_evenings_and_in_ended_slots_no_table_is_free(running):
    await running.live.database.write(lambda tx: tx.insert("closing_day", {
        "id": "c", "first_day": "2026-11-22", "last_day": "2026-11-22", "reason": ""}))  # fmt: skip
    running.clock.advance(3.5 * 3600)  # 22:30

    found = await read(running, "/v1/availability/range?from=2026-11-20&to=2026-11-23")

    days = found["days"]
    assert [(day["closed"], [len(slot["free"]) for slot in day["slots"]]) for day in days] == [
        (False, [0, 0]), (False, [0, 5]), (True, [0, 0, 0]), (False, [5, 5]),
    ]  # fmt: skip
    _, venue, _ = await running.call("GET", "/v1/venue")
    assert venue["closedDates"] == ["2026-11-22"]
    assert (venue["utcOffset"], venue["bookableUntil"]) == ("+00:00", "2028-11-20")


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ("from=2026-11-21", "INVALID_DATE", "to"),
        ("to=2026-11-21", "INVALID_DATE", "from"),
        ("from=2026-11-22&to=2026-11-21", "INVALID_DATE", "to"),
        ("from=2026-11-21&to=2027-01-22", "INVALID_DATE", "to"),
        ("from=2026-11-21&to=2026-11-21&guests=two", "INVALID_GUESTS", "guests"),
        ("from=2026-11-21&to=2026-11-21&slot=19:30", "VALIDATION_ERROR", "slot"),
    ],
)
async def test_an_invalid_range_is_refused(running, query, code, field):
    status, refusal, _ = await running.call("GET", f"/v1/availability/range?{query}")
    assert (status, refusal["code"], refusal["field"]) == (400, code, field)


async def test_a_range_may_have_sixty_two_evenings(running):
    found = await read(running, "/v1/availability/range?from=2026-11-21&to=2027-01-21")
    assert len(found["days"]) == 62


@pytest.mark.parametrize(
    "path", [RANGE, "/v1/venue", f"/v1/availability?date={TONIGHT}", "/v1/reservations"]
)
async def test_an_unchanged_answer_is_not_sent_again(running, path):
    _, _, headers = await ask(running, path)
    tag = headers["ETag"]
    status, body, headers = await ask(running, path, f'"other", {tag}')
    assert (status, body, headers["ETag"]) == (304, b"", tag)

    await running.call("POST", "/v1/reservations", json=a_body())
    await running.live.database.write(lambda tx: tx.execute("UPDATE venue SET name = 'Other'"))

    status, _, headers = await ask(running, path, tag)
    assert (status, headers["ETag"] != tag) == (200, True)


class TestWithARate:
    @pytest.fixture
    def settings(self):
        return with_settings(api={"rate_limit_per_minute": 3, "unauthenticated_per_minute": 5})

    async def test_every_answer_shows_the_rate_limit_and_a_304_is_not_counted(self, running):
        _, _, headers = await ask(running, RANGE)
        assert headers["RateLimit-Policy"] == '"key";q=3;w=60'
        assert headers["RateLimit"] == '"key";r=2;t=60'
        running.clock.advance(20)
        for _ in range(9):
            status, _, now = await ask(running, RANGE, headers["ETag"])
            assert (status, now["RateLimit"]) == (304, '"key";r=2;t=40')
        told = [(await ask(running, "/v1/nothing/else", headers["ETag"]))[0]]
        for path in ("/v1/venue", "/v1/availability", "/v1/venue"):
            status, _, now = await ask(running, path)
            told.append((status, now["RateLimit"], now.get("Retry-After")))
        assert told == [
            404,
            (200, '"key";r=1;t=40', None),
            (400, '"key";r=0;t=40', None),
            (429, '"key";r=0;t=40', "60"),
        ]

    async def test_without_a_valid_key_the_rate_limit_is_that_of_the_address(self, running):
        _, _, headers = await ask(running, "/v1/venue", key="svc_live_" + "0" * 48)
        assert headers["RateLimit-Policy"] == '"address";q=5;w=60'
        assert headers["RateLimit"] == '"address";r=4;t=60'

    async def test_calls_about_deliveries_have_a_separate_rate_limit(self, running):
        for _ in range(3):
            await ask(running, "/v1/venue")
        status, _, headers = await ask(running, f"/v1/webhooks/{VENUE_ID}/deliveries")
        assert (status, headers["RateLimit"]) == (404, '"deliveries";r=2;t=60')


async def test_a_key_of_any_scope_can_read_its_own_description(running):
    key = await a_key(running.test, ("venue:read",))
    found = running.test.database.peek(list_keys)[-1]
    status, body, _ = await running.call("GET", "/test/v1/key", key=key)
    assert (status, body) == (200, {
        "environment": "test",
        "scopes": ["venue:read"],
        "name": found.name,
        "venue": {"id": VENUE_ID, "name": "Riad Atlas"},
        "createdAt": "2026-11-21T19:00:00.000Z",
    })  # fmt: skip


@pytest.mark.parametrize(
    ("slot", "starts", "ends"),
    [("19:30", "21T19:30", "21T22:00"), ("22:00", "21T22:00", "22T01:00"),
     (None, "21T19:30", "22T01:00")],
)  # fmt: skip
async def test_a_reservation_says_when_it_starts_and_ends(running, slot, starts, ends):
    _, made, _ = await running.call("POST", "/v1/reservations", json=a_body() | {"slot": slot})
    _, found, _ = await running.call("GET", f"/v1/reservations/{made['serviceReservationId']}")
    instants = (found["startsAt"], found["endsAt"])
    assert instants == (f"2026-11-{starts}:00.000Z", f"2026-11-{ends}:00.000Z")


async def test_a_reservation_says_who_cancelled_and_shows_the_email_result_only_to_its_own_key(
    running,
):
    customer = {"name": "Salma Idrissi", "email": "salma@example.com"}
    _, made, _ = await running.call("POST", "/test/v1/reservations", json=a_body(customer=customer))
    path = f"/test/v1/reservations/{made['serviceReservationId']}"
    _, found, _ = await running.call("GET", path)
    assert found["notifications"] == {"email": "sent", "sms": "skipped"}
    assert "cancelledBy" not in found
    await running.call("DELETE", path)

    _, found, _ = await running.call("GET", path, key=await a_key(running.test))

    assert (found["cancelledBy"], "notifications" in found) == ("partner", False)
