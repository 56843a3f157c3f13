"""The box's clock: after an unconfirmed step it continues from the uptime."""

import errno
import os
import socket

import pytest

from appliance import clock as clock_steps
from appliance.clock import BoxClock, ClockMark, parse_instant, watch_clock_steps
from tests.clocks import StoppedClock
from tests.unit.email.mail_servers import until
from tests.webhooks.alarms import ManualUptime

NOW = "2026-11-21T19:00:00Z"
GRACE_MS = 600_000
LONG_AGO = 20 * GRACE_MS  # the machine has run for hours


class Surroundings:
    """A machine whose clock a time server may have synchronised."""

    def __init__(self, up=LONG_AGO, boot="a boot", instant=NOW):
        self.machine = StoppedClock(instant)
        self.up = ManualUptime(self.machine, boot, up)
        self.synchronised = False

    def clock(self, mark=None):
        made = BoxClock(
            self.machine, self.up.boot, self.up.milliseconds, lambda: self.synchronised, GRACE_MS
        )
        made.remember(mark)
        return made


@pytest.fixture
def machine():
    return Surroundings()


@pytest.mark.parametrize("leap", ["2027-11-21T19:00:00Z", "2026-10-22T19:00:00Z",
                                  "1970-01-01T00:00:00Z"])  # fmt: skip
def test_through_a_leap_it_counts_on_and_follows_when_the_clock_is_back(machine, leap):
    clock = machine.clock()
    assert clock.now() == parse_instant(NOW)

    machine.machine.set(leap)
    machine.up.advance(60)
    assert clock.now() == parse_instant("2026-11-21T19:01:00Z")
    machine.machine.set("2026-11-21T19:01:10Z")

    assert clock.now() == parse_instant("2026-11-21T19:01:10Z")


def test_a_time_server_is_followed_at_once_and_whoever_insists_after_ten_minutes(machine):
    clock = machine.clock()
    clock.now()
    machine.machine.set("2026-11-22T19:00:00Z")
    assert clock.now() == parse_instant(NOW)

    machine.up.advance(GRACE_MS / 1000)
    assert clock.now() == parse_instant("2026-11-22T19:10:00Z")
    machine.synchronised = True
    machine.machine.set("2026-11-21T19:10:00Z")

    assert clock.now() == parse_instant("2026-11-21T19:10:00Z")


def test_a_restart_of_the_program_remembers_where_the_clock_was_good():
    machine = Surroundings(instant="2027-11-21T19:00:00Z")
    good = parse_instant(NOW) - LONG_AGO

    clock = machine.clock(ClockMark(parse_instant(NOW), "a boot", good))

    assert clock.now() == parse_instant(NOW)


def test_after_a_start_of_the_machine_it_is_not_before_what_is_certainly_past():
    machine = Surroundings(up=5_000, boot="another boot", instant="1970-01-01T00:00:05Z")
    clock = machine.clock(ClockMark(parse_instant(NOW), "a boot", 0))
    assert clock.now() == parse_instant(NOW)

    machine.up.advance(7)
    assert clock.now() == parse_instant("2026-11-21T19:00:07Z")
    machine.synchronised = True
    machine.machine.set("2026-11-21T21:00:00Z")

    assert clock.now() == parse_instant("2026-11-21T21:00:00Z")


def test_a_new_box_that_nothing_has_confirmed_yet_follows_its_machine():
    machine = Surroundings(up=5_000)
    clock = machine.clock()
    assert clock.now() == parse_instant(NOW)

    machine.machine.set("2026-11-22T19:00:00Z")

    assert clock.now() == parse_instant("2026-11-22T19:00:00Z")


async def test_a_timer_that_the_kernel_cancels_is_the_news_each_time(monkeypatch):
    """Use a socket pair as the timer: it becomes readable, and reading raises ECANCELED."""
    kernel, timer = socket.socketpair()
    read, calls, armed = os.read, [], []

    class Libc:
        def timerfd_create(self, *_arguments):
            return timer.detach()

        def timerfd_settime(self, *_arguments):
            armed.append(1)
            return 0

    def cancelled(descriptor, count):
        read(descriptor, count)
        raise OSError(errno.ECANCELED, "the clock was set")

    monkeypatch.setattr(clock_steps.ctypes, "CDLL", lambda *_args, **_options: Libc())
    monkeypatch.setattr(clock_steps.os, "read", cancelled)
    stop = watch_clock_steps(lambda: calls.append(1))

    for count in (1, 2):
        kernel.send(b"8 bytes!")
        await until(lambda count=count: len(calls) == count)

    stop()
    kernel.close()
    assert len(armed) == 3


@pytest.mark.parametrize("readings", [1, 2, 3])
def test_a_clock_that_is_set_right_while_it_is_judged_is_not_told_as_it_was_before(readings):
    machine = Surroundings()
    good = parse_instant(NOW) - LONG_AGO
    clock = machine.clock(ClockMark(parse_instant(NOW), "a boot", good))
    told = [parse_instant("1970-12-06T19:00:00Z")] * readings
    machine.machine.now = lambda: told.pop() if told else parse_instant(NOW)

    assert clock.now() == parse_instant(NOW)
