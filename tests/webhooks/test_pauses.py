"""Nothing is sent if no delivery is due or deliveries are held."""

import asyncio
from dataclasses import replace

import apsw
import pytest

from appliance.webhooks import dispatcher
from appliance.webhooks.client import Budgets
from appliance.webhooks.endpoints import deactivate_endpoint
from tests.webhooks.alarms import alarm_is
from tests.webhooks.receivers import an_answer


async def test_a_deactivated_endpoint_receives_no_more_deliveries(world, receiver, timer):
    endpoint, _ = await world.register(receiver.url)
    receiver.always = an_answer(500)
    await world.start()
    await world.book(3)
    await world.recorded(3)

    await world.database.write(deactivate_endpoint, endpoint.id)
    assert world.states() == ["cancelled"] * 3
    timer.advance(24 * 3600)
    await world.book()
    await asyncio.sleep(0.05)

    assert len(receiver.requests) == 3
    assert world.states() == ["cancelled"] * 3
    assert timer.next_alarm is None


@pytest.mark.parametrize(("status", "state"), [(200, "delivered"), (500, "cancelled")])
async def test_an_attempt_in_progress_during_deactivation_is_recorded_and_is_the_last(
    world, receiver, status, state
):
    endpoint, _ = await world.register(receiver.url)
    receiver.always = an_answer(status)
    receiver.answering.clear()
    await world.start()
    await world.book()
    await receiver.got(1)

    await world.database.write(deactivate_endpoint, endpoint.id)
    receiver.answering.set()
    await world.recorded(1)

    await world.settled(state)


async def test_a_url_that_the_settings_no_longer_allow_is_blocked_with_the_reason(world, receiver):
    await world.register(receiver.url)
    webhooks = replace(world.environment.settings.webhooks, allow_http=False)
    settings = replace(world.environment.settings, webhooks=webhooks)
    world.environment = replace(world.environment, settings=settings)

    await world.start()
    await world.book()

    await world.recorded(1)
    assert world.attempts() == [(1, "blocked")]
    assert receiver.connections == 0
    assert world.rows("SELECT last_outcome FROM endpoint") == [("blocked",)]


async def test_nothing_is_sent_when_nothing_is_due(world, receiver, timer, monkeypatch):
    await world.register(receiver.url)
    await world.start()
    await world.book()
    await world.settled("delivered")
    await asyncio.sleep(0.05)
    statements = []
    for reader in (world.database._peeker, world.database._writer_connection):
        connection = getattr(reader, "connection", reader)
        connection.set_exec_trace(lambda _cursor, sql, _values: statements.append(sql) or True)

    timer.advance(600)
    await asyncio.sleep(0.1)

    assert statements == []
    assert timer.next_alarm is None


async def test_stopping_waits_for_current_attempts_and_keeps_the_rest(world, receiver):
    await world.register(receiver.url)
    receiver.answering.clear()
    await world.book(20)
    await world.start()
    await receiver.got(6)

    stopping = asyncio.create_task(world.stop())
    await asyncio.sleep(0)
    receiver.answering.set()
    await stopping

    assert len(receiver.requests) == 6
    assert sorted(world.states()) == ["delivered"] * 6 + ["pending"] * 14


async def test_attempts_that_exceed_the_stop_deadline_are_sent_again_after_the_restart(
    world, receiver, change_outside
):
    change_outside(budgets=Budgets())
    await world.register(receiver.url)
    receiver.delay = 30
    await world.start()
    await world.book()
    [first] = await receiver.got(1)

    await world.stop(0.05)
    assert world.states() == ["pending"]
    assert world.attempts() == []
    receiver.delay = 0
    await world.start()
    _, second = await receiver.got(2)

    assert second.id == first.id
    await world.settled("delivered")


@pytest.mark.parametrize("error", [apsw.IOError, apsw.CorruptError, ValueError])
async def test_a_delivery_whose_row_cannot_be_read_once_is_sent_on_the_next_try(
    world, receiver, timer, monkeypatch, error
):
    sound, reads = dispatcher.get_reservation, iter(range(10**6))

    def read(*args):
        if next(reads) == 2:
            raise error("disk I/O error")
        return sound(*args)

    await world.register(receiver.url)
    await world.book(20)
    monkeypatch.setattr(dispatcher, "get_reservation", read)
    await world.start()

    await alarm_is(timer, 15)
    timer.advance(15)

    await world.settled(*["delivered"] * 20)
    assert len({request.id for request in receiver.requests}) == len(receiver.requests) == 20
