"""`GET /v1/events`: the announced events, with a cursor that neither skips nor repeats any."""

import asyncio
from datetime import date

import pytest

from appliance.clock import DAY_MS
from appliance.outbox import announce
from appliance.venue.edit import close_days, open_days
from appliance.webhooks.delivery_log import drop_events, find_events
from tests.builders import VENUE_ID, a_body, a_key, table_id
from tests.conftest import Running


async def page(running: Running, query: str = "", key: str | None = None) -> dict:
    status, body, _ = await running.call("GET", f"/v1/events{query}", key=key)
    assert status == 200
    return body


async def book(running: Running, **changes) -> str:
    _, made, _ = await running.call("POST", "/v1/reservations", json=a_body(**changes))
    return made["serviceReservationId"]


async def test_events_are_listed_in_order_with_the_current_state_of_the_reservation(running):
    id_ = await book(running, externalRef="R-1")
    path = f"/v1/reservations/{id_}"
    await running.call("PATCH", path, json={"guests": 3, "idempotencyKey": "change"})
    await running.call("DELETE", path)

    found = await page(running)

    assert [item["type"] for item in found["items"]] == [
        "reservation.created", "reservation.updated", "reservation.cancelled",
    ]  # fmt: skip
    states = [item["data"]["reservation"] for item in found["items"]]
    assert states == [states[0]] * 3
    assert (states[0]["status"], states[0]["guests"], states[0]["cancelledBy"]) == (
        "cancelled", 3, "partner",
    )  # fmt: skip
    assert (states[0]["createdByThisKey"], states[0]["externalRef"]) == (True, "R-1")
    other = (await page(running, key=await a_key(running.live)))["items"][0]["data"]["reservation"]
    assert (other["createdByThisKey"], "externalRef" in other) == (False, False)


async def test_the_next_call_continues_where_the_last_one_ended(running):
    assert await page(running) == {"items": [], "next": "0-"}
    for number in range(1, 6):
        await book(running, tableId=table_id(f"T{number}"), idempotencyKey=str(number))
    seen, following = [], "0-"
    while (found := await page(running, f"?limit=2&after={following}"))["items"]:
        seen += [item["eventId"] for item in found["items"]]
        following = found["next"]
    assert (len(seen), len(set(seen))) == (5, 5)
    assert found["next"] == following == (await page(running, "?after=now"))["next"]


async def test_event_types_excluded_by_the_filter_are_skipped_by_the_cursor(running):
    await book(running)
    found = await page(running, "?types=reservation.cancelled,venue.updated")
    assert found["items"] == []
    assert found["next"] == (await page(running, "?after=now"))["next"]


async def test_changes_of_the_venue_are_listed_and_sent_to_endpoints_that_subscribed_to_them(
    running,
):
    body = {"url": "https://receiver.example/", "events": ["venue.updated"]}
    await running.call("POST", "/v1/webhooks", json=body)
    database = running.live.database
    await database.write(close_days, date(2026, 12, 24), date(2026, 12, 24), "")
    closing_id = database.peek(lambda reader: reader.value("SELECT id FROM closing_day"))
    (item,) = (await page(running))["items"]
    assert (item["type"], item["data"]) == (
        "venue.updated",
        {"venue": {"id": VENUE_ID, "name": "Riad Atlas", "slug": "riad-atlas", "status": "active"}},
    )
    count = database.peek(lambda reader: reader.value("SELECT count(*) FROM delivery"))
    assert count == 1
    await database.write(open_days, closing_id)
    assert len((await page(running))["items"]) == 2


@pytest.mark.parametrize(
    ("query", "field"),
    [("?after=7-00000000", "after"), ("?after=1-00000000", "after"), ("?after=x", "after"),
     ("?types=reservation.moved", "types"),
     ("?limit=201", "limit"), ("?since=now", "since")],
)  # fmt: skip
async def test_an_invalid_cursor_type_or_parameter_is_refused(running, query, field):
    await book(running)
    status, body, _ = await running.call("GET", f"/v1/events{query}")
    assert (status, body["code"], body["field"]) == (400, "VALIDATION_ERROR", field)


async def test_a_cursor_older_than_the_stored_events_is_refused_as_expired(running):
    await book(running)
    old = (await page(running))["next"]
    running.clock.advance(31 * DAY_MS / 1000)
    await book(running, date="2026-12-23", idempotencyKey="2")
    await book(running, date="2026-12-24", idempotencyKey="3")
    current = (await page(running))["next"]
    running.clock.advance(31 * DAY_MS / 1000)
    database = running.live.database
    keys = database.peek(find_events, running.clock.now())
    await database.write(drop_events, keys)

    assert (await page(running, f"?after={current}"))["items"] == []
    status, body, _ = await running.call("GET", f"/v1/events?after={old}")
    assert (status, body["field"]) == (400, "after")

    await book(running, date="2027-02-01", idempotencyKey="4")
    assert len((await page(running, f"?after={current}"))["items"]) == 1


async def test_ten_thousand_simultaneous_commits_lose_and_repeat_no_event(running):
    database, id_ = running.live.database, await book(running)
    following = (await page(running, "?after=now"))["next"]
    seen: list[str] = []
    written = 0

    async def write(count: int) -> None:
        nonlocal written
        for _ in range(count):
            await database.write(announce, "reservation.updated", id_)
            written += 1

    async def read() -> None:
        nonlocal following
        while len(seen) < 10_000:
            found = await page(running, f"?limit=200&after={following}")
            assert written + 100 >= len(seen)
            seen.extend(item["eventId"] for item in found["items"])
            following = found["next"]
            await asyncio.sleep(0)

    async with asyncio.timeout(300):
        await asyncio.gather(read(), *(write(100) for _ in range(100)))

    assert (len(seen), len(set(seen))) == (10_000, 10_000)
    assert (await page(running, f"?after={following}"))["items"] == []
