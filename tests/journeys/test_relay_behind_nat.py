"""A box behind NAT, a relay on the internet and a phone there: booking, and a line that is cut."""

import os
from functools import partial

import pytest

from tests.journeys.box_process import BoxProcess, found_box, venuebox
from tests.journeys.relay_process import RelayProcess
from tests.journeys.test_house_behind_nat import (
    NAME,
    PORT,
    a_public_certificate,
    book,
    call,
    is_reached,
)
from tests.journeys.test_relay import until
from tests.namespaces import Venue, ip, may_build_a_venue, within

PHONE = "203.0.113.9"
__test__ = may_build_a_venue()


@pytest.fixture
def venue():
    with Venue(f"vbr{os.getpid() % 10**6}") as built:
        ip("-n", built.stranger, "addr", "add", f"{PHONE}/24", "dev", "eth")
        yield built


@pytest.fixture
def relay(venue, tmp_path):
    wrapper = ("ip", "netns", "exec", venue.stranger)
    ports = {"tls": 443, "http": 80, "ssh": 2222, "status": 9180}
    data, log = tmp_path / "relay", tmp_path / "relay.log"
    with RelayProcess(data, venue.STRANGER, log=log, ports=ports, wrapper=wrapper) as process:
        yield process


@pytest.fixture
def box(venue, relay, tmp_path):
    founded = found_box(tmp_path)
    wrapper = ("ip", "netns", "exec", venue.box)
    box = BoxProcess(founded.data, log=tmp_path / "log", wrapper=wrapper)
    box.keys = founded.keys
    box.terminals = founded.terminals
    box.settings |= {"VENUEBOX_SERVER_APP_URL": f"https://{NAME}"}
    box.settings |= {"VENUEBOX_API_UNAUTHENTICATED_PER_MINUTE": "2"}
    listen = ("--host", "0.0.0.0", "--port", str(PORT))  # noqa: S104 - in a network of its own
    box.spawn("--data", str(box.data), *listen)
    try:
        box.wait_until_ready()
        within(venue.box, venuebox, "relay", "join", relay.invite(NAME), "--data", str(box.data))
        yield box
    finally:
        box.kill()


def test_guests_outside_reach_a_box_behind_nat_through_the_relay(venue, relay, box, tmp_path):
    public = a_public_certificate("ec", tmp_path, box)
    relayed = venue.STRANGER, 443
    from_phone = partial(call, source=PHONE)
    on_the_phone = partial(within, venue.stranger, from_phone, relayed, public, NAME)
    at_the_relay = partial(within, venue.stranger, call, relayed, public, NAME)
    until(lambda: is_reached(on_the_phone), "the box is not reached through the relay")
    assert box.pid != relay.process.pid

    book(on_the_phone, box, 0)

    # The phone has used up the tries of its own address, and of no other.
    tries = [on_the_phone("GET", "/v1/venue").status for _ in range(3)]
    assert tries == [401, 401, 429]
    assert at_the_relay("GET", "/v1/venue").status == 401

    venue.cut_the_line()
    assert not is_reached(on_the_phone)
    venue.restore_the_line()
    until(lambda: is_reached(on_the_phone), "the box does not come back with the line")

    at_http = (venue.STRANGER, 80), None, NAME
    plain = within(venue.stranger, from_phone, *at_http, "GET", "/access/x")
    assert (plain.status, plain.location) == (308, f"https://{NAME}/access/x")
