"""Hearing of a clock that is set. No test sets the clock of the machine on which it runs."""

import asyncio
import errno
import os
import socket

from appliance import clock_steps
from appliance.clock_steps import watch_clock_steps
from appliance.clock_trust import kernel_is_synchronised


async def test_nobody_calls_while_nobody_sets_the_clock():
    calls = []

    stop = watch_clock_steps(lambda: calls.append(1))
    await asyncio.sleep(0.05)
    stop()

    assert calls == []


async def test_a_timer_that_the_kernel_cancels_is_the_news_each_time(monkeypatch):
    """A pair of sockets in the place of the timer: readable, and read with ECANCELED."""
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
        async with asyncio.timeout(60):
            while len(calls) < count:  # noqa: ASYNC110 - the loop hears it
                await asyncio.sleep(0.002)

    stop()
    kernel.close()
    assert len(armed) == 3


async def test_where_the_kernel_has_no_such_timer_nobody_calls_and_nothing_fails(monkeypatch):
    monkeypatch.setattr(clock_steps.ctypes, "CDLL", lambda *_args, **_options: object())

    stop = watch_clock_steps(lambda: None)

    stop()


def test_the_kernel_says_of_its_clock_yes_or_no_or_nothing():
    assert kernel_is_synchronised() in {True, False, None}
