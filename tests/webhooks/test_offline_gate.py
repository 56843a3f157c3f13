"""The offline gate: attempts are not charged while the box is offline (fault table, row 17)."""

import asyncio
import errno
import socket

import pytest

from tests.webhooks.alarms import alarm_is
from tests.webhooks.internet import (
    NO_ANSWER,
    NO_NETWORK,
    OTHER_PUBLIC,
    PUBLIC,
    Internet,
    charged,
    try_fails,
)
from tests.webhooks.receivers import an_answer


@pytest.mark.parametrize("cut", [Internet.lose_the_route, Internet.drop_packets])
async def test_row_17_three_offline_hours_cost_no_attempt_and_deliveries_resume_within_65_seconds(
    world, receiver, internet, timer, cut, caplog
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.start()
    cut(internet)
    await world.book(5)
    await world.recorded(1)
    await world.until(lambda: world.dispatcher._is_offline)

    for _ in range(3 * 60):
        await try_fails(timer)
    await world.book(5)
    await asyncio.sleep(0.05)
    assert set(charged(world)) == {("box_offline", 0)}
    assert len(charged(world)) <= 5
    assert receiver.requests == []
    internet.come_back()
    await alarm_is(timer, 60)
    timer.advance(60)

    await world.settled(*["delivered"] * 10)
    assert world.rows("SELECT DISTINCT attempts FROM delivery") == [(1,)]
    await world.until(lambda: not world.dispatcher._is_offline)
    assert caplog.text.count("the box is offline") == 1
    assert caplog.text.count("fails") == 0
    assert world.rows("SELECT failures_in_a_row FROM endpoint") == [(0,)]


async def test_a_receiver_on_the_lan_gets_deliveries_while_the_box_is_offline(
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


async def test_an_attempt_made_offline_does_not_advance_the_retry_schedule(
    world, receiver, internet, timer
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    receiver.always = an_answer(500, "Connection: close")
    await world.start()
    await world.book()
    await world.recorded(1)
    await alarm_is(timer, 60)
    internet.lose_the_route()
    timer.advance(60)
    await world.recorded(2)
    await alarm_is(timer, 60)

    internet.come_back()
    timer.advance(60)
    await world.recorded(3)

    assert charged(world) == [("http_500", 1), ("box_offline", 0), ("http_500", 1)]
    await alarm_is(timer, 300)


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (ConnectionRefusedError(), "conn_refused"),
        (ConnectionResetError(), "reset"),
        (TimeoutError(), "conn_timeout"),
        (OSError(errno.EHOSTUNREACH, "no route to host"), "unreachable"),
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "dns_nxdomain"),
    ],
)
async def test_failures_that_may_be_the_receivers_fault_are_charged(
    world, receiver, internet, names, timer, trouble, code
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.start()
    if isinstance(trouble, socket.gaierror):
        names.known["partner.example"] = trouble
    internet.trouble = trouble

    await world.book()
    await world.recorded(1)

    assert charged(world) == [(code, 1)]
    await alarm_is(timer, 60)


async def test_a_failed_lookup_of_one_name_is_charged_while_other_hosts_are_reachable(
    world, receiver, open_receiver, internet, names
):
    other = await open_receiver()
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.register(internet.add("other.example", OTHER_PUBLIC, other), ("webhook.test",))
    names.known["partner.example"] = NO_ANSWER
    await world.start()

    await world.book()
    await world.recorded(1)

    assert charged(world) == [("dns_temp", 1)]
    assert other.connections == 0


async def test_when_two_hosts_time_out_without_any_success_only_the_first_attempt_is_charged(
    world, receiver, open_receiver, internet, timer
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.register(internet.add("other.example", OTHER_PUBLIC, await open_receiver()))
    await world.start()
    internet.trouble = TimeoutError()

    await world.book()
    await world.recorded(2)
    assert sorted(charged(world)) == [("box_offline", 0), ("conn_timeout", 1)]
    for _ in range(10):
        await try_fails(timer)
    await alarm_is(timer, 60)
    assert sum(charge for _, charge in charged(world)) == 1
    internet.come_back()
    timer.advance(60)

    await world.settled("delivered", "delivered")
    await world.until(lambda: not world.dispatcher._is_offline)


async def test_a_failed_lookup_within_a_minute_of_a_success_is_charged(
    world, receiver, internet, timer
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    receiver.always = an_answer(200, "Connection: close")
    await world.start()
    await world.book()
    await world.settled("delivered")

    internet.drop_packets()
    await world.book()
    await world.recorded(2)
    assert charged(world)[1] == ("dns_temp", 1)
    await alarm_is(timer, 60)
    timer.advance(60)
    await world.recorded(3)

    assert charged(world)[2] == ("box_offline", 0)


async def test_a_box_with_an_unplugged_cable_charges_no_failure_even_for_lan_receivers(
    world, receiver, internet, timer, change_outside
):
    async def no_cable(_addresses, _port):
        raise NO_NETWORK

    await world.register(receiver.url)
    change_outside(connect=no_cable)
    await world.start()
    await world.book()
    await world.recorded(1)

    assert charged(world) == [("box_offline", 0)]
    await alarm_is(timer, 60)
