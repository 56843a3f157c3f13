"""A failure while the box may be offline: to whom it is charged."""

import errno
import socket

import pytest

from appliance.webhooks.dialling import connect_directly
from tests.appliance.webhooks.alarms import alarm_is
from tests.appliance.webhooks.internet import (
    NO_ANSWER,
    NO_NETWORK,
    OTHER_PUBLIC,
    PUBLIC,
    charged,
)
from tests.appliance.webhooks.receivers import an_answer


@pytest.mark.proves("decision: The venue is offline?")
@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (ConnectionRefusedError(), "conn_refused"),
        (ConnectionResetError(), "reset"),
        (TimeoutError(), "conn_timeout"),
        (OSError(errno.EHOSTUNREACH, "no route to host"), "unreachable"),
    ],
)
async def test_what_may_be_the_receivers_fault_is_charged(
    world, receiver, internet, uptime, trouble, code
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.start()
    internet.trouble = trouble

    await world.book()
    await world.recorded(1)

    assert charged(world) == [(code, 1)]
    await alarm_is(uptime, 60)


async def test_a_name_that_does_not_exist_and_an_answer_of_500_are_charged(
    world, receiver, internet, names
):
    await world.register(internet.add("partner.example", PUBLIC, receiver))
    await world.register(internet.add("gone.example", OTHER_PUBLIC, receiver))
    names.known["gone.example"] = socket.gaierror(socket.EAI_NONAME, "unknown")
    receiver.always = an_answer(500)
    await world.start()

    await world.book()
    await world.recorded(2)

    assert sorted(charged(world)) == [("dns_nxdomain", 1), ("http_500", 1)]


async def test_a_name_server_that_fails_one_name_is_the_receivers_trouble_when_others_are_there(
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
    assert other.requests == []  # it was looked for, and told nothing
    assert other.connections == 1


async def test_within_a_minute_of_a_success_a_lookup_that_fails_is_charged(
    world, receiver, internet, uptime
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
    await alarm_is(uptime, 60)
    uptime.advance(60)
    await world.recorded(3)

    assert charged(world)[2] == ("box_offline", 0)


async def test_a_box_that_loses_its_own_cable_charges_not_even_those_in_the_house(
    world, receiver, internet, uptime, change_outside
):
    async def no_cable(_addresses, _port):
        raise NO_NETWORK

    endpoint, _ = await world.register(receiver.url)
    change_outside(connect=no_cable)
    dispatcher = await world.start()
    await world.book()
    await world.recorded(1)
    assert charged(world) == [("box_offline", 0)]

    client = dispatcher._recipients[endpoint.id].client
    client._connect = connect_directly
    await alarm_is(uptime, 5)
    uptime.advance(5)

    await world.settled("delivered")
