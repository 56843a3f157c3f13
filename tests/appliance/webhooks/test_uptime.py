"""Time since the machine started."""

import asyncio
import time

from appliance.webhooks.uptime import SystemUptime


async def test_it_counts_milliseconds_of_one_boot_whoever_asks():
    first, second = SystemUptime(), SystemUptime()

    assert first.boot == second.boot
    assert first.milliseconds() <= second.milliseconds() <= first.milliseconds()


async def test_where_the_machine_has_no_such_count_each_process_is_a_boot(monkeypatch):
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")

    first, second = SystemUptime(), SystemUptime()

    assert first.boot != second.boot
    assert first.milliseconds() <= second.milliseconds() <= first.milliseconds()


async def test_an_alarm_rings_when_its_time_has_come_and_not_when_it_was_cancelled():
    uptime, rang, last = SystemUptime(), [], asyncio.Event()
    due = uptime.milliseconds() + 30

    uptime.call_at(due, lambda: rang.append(uptime.milliseconds()))
    uptime.call_at(due, lambda: rang.append("cancelled")).cancel()
    uptime.call_at(due + 30, last.set)
    async with asyncio.timeout(60):
        await last.wait()

    assert len(rang) == 1
    assert due - 2 <= rang[0] < due + 30_000
