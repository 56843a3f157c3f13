"""A row that cannot be read for a moment stops nothing for good."""

import apsw
import pytest

from appliance.actions.deactivate_endpoint import deactivate_endpoint
from appliance.errors import Unavailable
from appliance.webhooks import dispatcher as dispatcher_module
from appliance.webhooks import picking
from tests.appliance.webhooks.alarms import alarm_is
from tests.appliance.webhooks.receivers import an_answer

AGAIN = 15


@pytest.fixture
def unreadable(monkeypatch):
    """`unreadable(module, name, *calls)`: those calls of it find a disk that gives nothing."""

    def spoil(module, name, *calls, error=apsw.IOError):
        sound, count = getattr(module, name), 0

        def read(*args):
            nonlocal count
            count += 1
            if count in calls:
                raise error() if error is Unavailable else error("disk I/O error")
            return sound(*args)

        monkeypatch.setattr(module, name, read)

    return spoil


@pytest.mark.parametrize("error", [apsw.IOError, apsw.CorruptError, ValueError])
async def test_what_cannot_be_read_in_the_middle_of_a_round_is_sent_a_moment_later(
    world, receiver, uptime, unreadable, error
):
    await world.register(receiver.url)
    await world.book(20)
    unreadable(picking, "find_reservation", 3, error=error)
    await world.start()

    await alarm_is(uptime, AGAIN)
    uptime.advance(AGAIN)

    await world.settled(*["delivered"] * 20)
    assert len({request.id for request in receiver.requests}) == len(receiver.requests) == 20


async def test_a_lane_keeps_all_its_places_however_often_a_round_breaks_off(
    world, receiver, uptime, unreadable
):
    await world.register(receiver.url)
    await world.start()
    for _ in range(9):
        await world.book(8)
        unreadable(picking, "find_reservation", 1)
        uptime.advance(AGAIN)
    uptime.advance(AGAIN)

    await world.settled(*["delivered"] * 72)


async def test_an_attempt_that_is_under_way_is_not_begun_again(world, receiver, uptime, unreadable):
    await world.register(receiver.url)
    receiver.answering.clear()
    await world.book(4)
    await world.start()
    await receiver.got(4)
    unreadable(picking, "find_reservation", 1)
    await world.book()
    uptime.advance(AGAIN)
    receiver.answering.set()

    await world.settled(*["delivered"] * 5)
    assert len({request.id for request in receiver.requests}) == len(receiver.requests) == 5


async def test_a_retry_that_cannot_be_read_is_made_a_moment_later(
    world, receiver, uptime, unreadable
):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)] * 3
    await world.book(3)
    await world.start()
    await world.recorded(3)
    unreadable(picking, "find_reservation", 2)
    uptime.advance(90)
    uptime.advance(AGAIN)

    await world.settled(*["delivered"] * 3)


async def test_what_has_changed_about_endpoints_is_read_until_it_could_be(
    world, receiver, uptime, unreadable
):
    endpoint, _ = await world.register(receiver.url)
    await world.start()
    await world.book()
    await world.settled("delivered")
    unreadable(dispatcher_module, "list_active_endpoints", 1, 2, error=Unavailable)

    await world.database.write(deactivate_endpoint, endpoint.id)
    await alarm_is(uptime, AGAIN)
    uptime.advance(AGAIN)
    await alarm_is(uptime, AGAIN)
    uptime.advance(AGAIN)

    assert world.dispatcher._recipients == {}
