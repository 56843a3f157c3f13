"""What is the box's own fault, or nobody's: rows 13, 20 and 28 (17 and 19: see the gates)."""

import asyncio
import contextlib
import random

import apsw

from appliance.errors import Unavailable
from appliance.store.conditions import list_conditions
from appliance.store.failed_requests import find_failed_request
from tests.appliance.webhooks.receivers import an_answer
from tests.appliance.webhooks.test_retries import LADDER


async def next_alarm_in(uptime, earliest, latest):
    async with asyncio.timeout(60):
        while uptime.next_alarm is None or not earliest <= uptime.next_alarm <= latest:  # noqa: ASYNC110 - a commit brings it about
            await asyncio.sleep(0.002)
    return uptime.next_alarm


async def test_row_13_the_full_schedule_is_never_early_and_at_most_a_tenth_or_a_minute_late(
    world, receiver, uptime, change_outside
):
    change_outside(draw=random.Random(13).random)
    await world.register(receiver.url)
    receiver.always = an_answer(503)
    await world.start()
    [reservation_id] = await world.book()

    for number, delay in enumerate(LADDER, start=1):
        await world.recorded(number)
        wait = await next_alarm_in(uptime, delay, delay + min(delay / 10, 60))
        await world.change(reservation_id, guests=number + 2)
        uptime.advance(wait)
    await world.settled("dead")
    uptime.advance(30 * 24 * 3600)
    await asyncio.sleep(0.02)

    assert len(receiver.requests) == 6
    assert len({request.id for request in receiver.requests}) == 1
    assert [request.reservation["guests"] for request in receiver.requests] == [2, 3, 4, 5, 6, 7]
    assert len({request.headers["x-service-signature"] for request in receiver.requests}) == 6


async def test_the_very_request_that_failed_last_can_be_read_until_it_is_delivered(
    world, receiver, uptime
):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    await world.book()
    await world.recorded(1)

    request = receiver.requests[0]
    _, kept = world.database.peek(find_failed_request, request.id)
    head, _, body = kept.partition(b"\r\n\r\n")
    assert body == request.raw
    assert request.headers["x-service-signature"].encode() in head
    await next_alarm_in(uptime, 60, 60)
    uptime.advance(60)
    await world.settled("delivered")

    assert world.database.peek(find_failed_request, request.id) is None
    [(first,), (second,)] = world.rows("SELECT body_sha256 FROM attempt ORDER BY n")
    assert first == second
    assert len(first) == 32


async def test_row_20_a_full_disk_keeps_results_in_memory_stops_new_sends_and_books_nothing_by_half(
    world, receiver, monkeypatch
):
    monkeypatch.setattr("appliance.webhooks.recorder._AGAIN_SECONDS", 0.05)
    await world.register(receiver.url)
    receiver.always = an_answer(200, body=b"x" * 1000)
    await world.start()
    await world.book()
    await world.settled("delivered")
    receiver.answering.clear()
    await world.book(8)
    await receiver.got(9)
    fill_the_disk(world)
    receiver.answering.set()

    await world.until(lambda: "unwritten_outcomes" in world.dispatcher._holds)
    refused = 0
    for _ in range(3):
        try:
            await world.book(customer_name="x" * 5000)
        except Unavailable:
            refused += 1
    assert refused == 3
    assert world.rows("SELECT count(*) FROM reservation") == [(9,)]
    assert "pending" in world.states()
    assert len(receiver.requests) == 9
    free_the_disk(world)

    await world.settled(*["delivered"] * 9)
    assert len(receiver.requests) == 9
    await world.book()
    await world.settled(*["delivered"] * 10)
    await world.until(lambda: world.database.peek(list_conditions) == [])


def fill_the_disk(world):
    """The file may not grow: SQLite says FULL as it does without room on the volume."""
    connection = world.database._writer_connection
    connection.execute("CREATE TABLE filler (content BLOB)")
    connection.execute(f"PRAGMA max_page_count = {connection.pragma('page_count')}")
    with contextlib.suppress(apsw.FullError):
        while True:
            connection.execute("INSERT INTO filler VALUES (zeroblob(4000))")


def free_the_disk(world):
    world.database._writer_connection.execute("PRAGMA max_page_count = 1000000")


async def test_row_28_ten_idle_minutes_are_no_statement_no_alarm_and_no_commit(
    world, receiver, uptime, surroundings
):
    await world.register(receiver.url)
    await world.start()
    await world.book()
    await world.settled("delivered")
    await asyncio.sleep(0.05)
    statements, set_before = [], uptime.alarms_set
    for reader in (world.database._peeker, world.database._writer_connection):
        connection = getattr(reader, "connection", reader)
        connection.set_exec_trace(lambda _cursor, sql, _values: statements.append(sql) or True)
    commits = world.database.commits

    for _ in range(10):
        uptime.advance(60)
        await asyncio.sleep(0.01)

    assert statements == []
    assert world.database.commits == commits
    assert (uptime.next_alarm, uptime.alarms_set) == (None, set_before)
    assert surroundings.watching_network == []
