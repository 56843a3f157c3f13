"""Retention of the webhook log. Row 27 of the fault table has its short version here."""

import asyncio

import pytest

from appliance.backup.catalogue import DAY_MS
from appliance.clock import parse_instant
from appliance.jobs.nightly import Retention
from appliance.scheduler import Scheduler
from appliance.staff.accounts import create_staff
from appliance.staff.sign_in import add_failure, start_session
from appliance.webhooks.endpoints import register_endpoint
from tests.unit.jobs.keeping import Timer

NOW = parse_instant("2026-11-21T19:00:00Z")


class World:
    """An environment with one endpoint, and a retention job whose timer the test reads."""

    def __init__(self, environment, clock):
        self.environment, self.database, self.clock = environment, environment.database, clock

    async def add(self, state, days, *, attempts=1, excerpt="ok", count=1):
        """Add deliveries that ended, or were last tried, this many days ago."""
        await self.database.write(self._add, state, days, attempts, excerpt, count)

    def _add(self, tx, state, days, attempts, excerpt, count):
        at = tx.now - days * DAY_MS
        for _ in range(count):
            event = tx.insert("event", {"type": "reservation.created", "occurred_at": at})
            seq = tx.insert(
                "delivery",
                {"id": tx.new_id(), "endpoint_id": self.endpoint_id, "event_seq": event,
                 "state": state, "due_at": at, "attempts": attempts,
                 "finished_at": None if state == "pending" else at},
            )  # fmt: skip
            if state != "delivered":
                tx.insert("failed_request", {"delivery_seq": seq, "at": at, "request": b"POST /"})
            for n in range(1, attempts + 1):
                tx.insert(
                    "attempt",
                    {"delivery_seq": seq, "n": n, "at": at, "duration_ms": 5, "phase": "done",
                     "outcome": "delivered", "http_status": 200, "excerpt": excerpt, "charged": 1,
                     "body_sha256": bytes(32)},
                )  # fmt: skip

    async def forget(self):
        await Retention(self.environment).forget()

    def count(self, table, where="1"):
        sql = f"SELECT count(*) FROM {table} WHERE {where}"  # noqa: S608 - names of the test
        return self.database.peek(lambda reader: reader.value(sql))


@pytest.fixture
async def world(box, clock, monkeypatch):
    monkeypatch.setattr("appliance.jobs.nightly._PAUSE_SECONDS", 0)
    made = World(box.live, clock)
    arguments = (register_endpoint, box.live.keyring, "https://partner.example/", ("webhook.test",))
    made.endpoint_id = (await box.live.database.write(*arguments))[0].id
    return made


async def test_a_dead_delivery_can_be_replayed_for_exactly_thirty_days(world):
    await world.add("dead", 31, attempts=6)
    await world.add("delivered", 31, count=3)
    await world.add("dead", 29, attempts=6)

    await world.forget()

    assert world.count("delivery") == 1
    assert world.count("attempt") == 6
    assert world.count("failed_request") == 1
    assert world.count("event") == 1


async def test_a_week_after_delivery_the_result_is_kept_and_the_bodies_are_deleted(world):
    await world.add("delivered", 6)
    await world.add("delivered", 8)
    await world.add("cancelled", 8)
    await world.add("pending", 31)

    await world.forget()

    assert world.count("attempt") == 3
    assert world.count("delivery") == 4, "one that is not over stays, without its old attempts"
    assert world.count("attempt", "excerpt IS NOT NULL") == 1
    assert world.count("failed_request") == 1


@pytest.mark.parametrize(
    ("limit", "most", "left"), [("ATTEMPT_ROWS", 10, 10), ("ATTEMPT_BYTES", 1_000_000, 98)]
)
async def test_the_newest_attempts_within_the_row_and_byte_limits_are_kept(
    world, monkeypatch, limit, most, left
):
    monkeypatch.setattr(f"appliance.jobs.nightly.{limit}", most)
    size = 10_000 if left > 10 else 1
    for day in (3, 2):
        await world.add("delivered", day, count=2, excerpt="x" * size)
    for _ in range(left):
        world.clock.milliseconds += 1
        await world.add("delivered", 1, excerpt="x" * size)

    await world.forget()

    assert abs(world.count("attempt") - left) <= 1
    assert world.count("attempt", f"at < {NOW - 1.5 * DAY_MS}") == 0


async def test_retention_runs_at_the_start_and_each_night_at_four(world, clock):
    await world.add("dead", 31)
    timer = Timer()
    scheduler = Scheduler(world.database.clock, timer)
    scheduler.start(Retention(world.environment).job)
    await scheduler.settle()
    assert world.count("delivery") == 0
    assert timer.seconds == 9 * 3600  # four in the morning, venue time

    await world.add("dead", 31)
    clock.advance(10 * 3600)  # the machine slept, so no timer ran
    scheduler.look()
    await scheduler.settle()

    assert world.count("delivery") == 0
    assert timer.seconds == 23 * 3600
    await scheduler.close()


async def test_row_27_other_writes_happen_between_the_steps_of_a_long_retention(world):
    await world.add("dead", 31, attempts=6, count=1200)
    forgetting = asyncio.create_task(world.forget())
    writes = 0
    while not forgetting.done():
        await world.database.write(lambda tx: tx.execute("UPDATE venue SET name = name"))
        writes += 1
    await forgetting

    assert world.count("delivery") == 0
    assert writes >= 1200 / 62  # at least one write between any two steps


async def a_sign_in(world, clock, instant, *, seen=None):
    """Insert a session and a wrong password of that time."""

    def sign_in(tx):
        person = create_staff(tx, f"P {instant}", "host").staff_id
        start_session(tx, person, None, "a phone")
        add_failure(tx, instant.encode(), b"")

    clock.set(instant)
    await world.database.write(sign_in)
    if seen is not None:
        clock.set(seen)
        await world.database.write(
            lambda tx: tx.execute("UPDATE session SET seen_at = :now", {"now": tx.now})
        )


async def test_expired_sessions_and_yesterdays_failed_sign_ins_are_deleted(world, clock):
    await a_sign_in(world, clock, "2026-11-14T19:00:00Z", seen="2026-11-21T18:00:00Z")
    await a_sign_in(world, clock, "2026-11-21T07:00:00Z")
    await a_sign_in(world, clock, "2026-11-21T07:00:01Z")
    clock.set("2026-11-21T19:00:00Z")

    await world.forget()

    assert world.count("session") == world.count("session", "created_at % 2000 = 1000") == 1
    assert world.count("staff_sign_in_failure") == 2
    assert world.count("staff") == 3
    commits = world.database.commits
    await world.forget()
    assert world.database.commits == commits, "there was nothing to do"
