"""The offline gate: a box without a way out charges nobody for it. Row 17 of the fault table."""

import asyncio

import pytest

from appliance.actions.deactivate_endpoint import deactivate_endpoint
from tests.appliance.webhooks.alarms import alarm_is
from tests.appliance.webhooks.internet import PUBLIC, Internet, charged, conditions, probe_fails
from tests.appliance.webhooks.receivers import an_answer


@pytest.mark.proves("decision: The venue is offline?")
@pytest.mark.parametrize("cut", [Internet.lose_the_route, Internet.drop_packets])
async def test_row_17_a_cut_of_three_hours_costs_no_attempt_and_is_over_within_65_seconds(
    world, receiver, internet, uptime, cut, caplog
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.start()
    cut(internet)
    await world.book(5)
    await world.recorded(1)
    await world.until(lambda: conditions(world) == {"box_offline"})

    for seconds in (5, 10, 20, 40, 60):
        await probe_fails(uptime, seconds)
    for _ in range(3 * 60):
        await probe_fails(uptime, 60)
    await world.book(5)
    await asyncio.sleep(0.05)
    assert set(charged(world)) == {("box_offline", 0)}
    assert len(charged(world)) <= 5
    assert receiver.requests == []
    internet.come_back()
    await alarm_is(uptime, 60)
    uptime.advance(60)

    await world.settled(*["delivered"] * 10)
    assert world.rows("SELECT DISTINCT attempts FROM delivery") == [(1,)]
    await world.until(lambda: conditions(world) == set())
    assert caplog.text.count("the box is offline") == 1
    assert caplog.text.count("fails") == 0
    assert world.rows("SELECT failures_in_a_row FROM endpoint") == [(0,)]


@pytest.mark.proves("decision: The venue is offline?")
async def test_row_17_when_a_route_comes_back_the_first_send_follows_within_five_seconds(
    world, receiver, internet, uptime
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.start()
    internet.lose_the_route()
    await world.book()
    await world.recorded(1)
    for seconds in (5, 10, 20):
        await probe_fails(uptime, seconds)
    await alarm_is(uptime, 40)

    internet.come_back(with_news=True)
    assert uptime.next_alarm < 5
    uptime.advance(uptime.next_alarm)

    await world.settled("delivered")


async def test_news_that_came_a_little_early_are_followed_up_soon(
    world, receiver, internet, uptime, surroundings
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.start()
    internet.lose_the_route()
    await world.book()
    await world.recorded(1)

    surroundings.watching_network[0]()
    uptime.advance(uptime.next_alarm)
    await alarm_is(uptime, 1)
    internet.come_back()
    uptime.advance(1)

    await world.settled("delivered")


async def test_nothing_is_watched_and_no_alarm_is_set_unless_something_is_parked(
    world, receiver, internet, uptime, surroundings
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.start()
    assert surroundings.watching_network == []
    internet.lose_the_route()
    await world.book()
    await world.recorded(1)
    assert len(surroundings.watching_network) == 1

    internet.come_back(with_news=True)
    uptime.advance(1)
    await world.settled("delivered")

    assert surroundings.watching_network == []
    assert uptime.next_alarm is None


@pytest.mark.proves("decision: The venue is offline?")
async def test_a_receiver_in_the_house_is_served_while_the_box_is_offline(
    world, receiver, open_receiver, internet
):
    in_the_house = await open_receiver()
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.register(in_the_house.url)
    await world.start()
    internet.lose_the_route()

    await world.book(3)
    await in_the_house.got(3)
    await world.book(3)
    await in_the_house.got(6)

    assert receiver.requests == []
    await world.until(lambda: world.states().count("delivered") == 6)
    assert {code for code, _ in charged(world)} == {"box_offline", "delivered"}


async def test_an_endpoint_deactivated_while_parked_is_probed_no_more(
    world, receiver, internet, uptime
):
    endpoint, _ = await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.start()
    internet.lose_the_route()
    await world.book()
    await world.recorded(1)

    await world.database.write(deactivate_endpoint, endpoint.id)
    await alarm_is(uptime, 5)
    uptime.advance(5)

    await world.until(lambda: uptime.next_alarm is None)
    await world.until(lambda: conditions(world) == set())


async def test_a_restart_while_offline_goes_on_where_it_was(world, receiver, internet, uptime):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.start()
    internet.lose_the_route()
    await world.book()
    await world.recorded(1)
    await world.stop()
    assert conditions(world) == set()

    internet.come_back()
    await world.start()

    await world.settled("delivered")


async def test_a_retry_keeps_its_rung_through_the_cut(world, receiver, internet, uptime):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    receiver.always = an_answer(500, "Connection: close")
    await world.start()
    await world.book()
    await world.recorded(1)
    await alarm_is(uptime, 60)
    internet.lose_the_route()
    uptime.advance(60)
    await world.recorded(2)
    await alarm_is(uptime, 5)

    internet.come_back()
    uptime.advance(5)
    await world.recorded(3)

    assert charged(world) == [("http_500", 1), ("box_offline", 0), ("http_500", 1)]
    await alarm_is(uptime, 300)
