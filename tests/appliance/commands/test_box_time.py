"""A command beside a box goes by the time of the box: a clock that leapt dates nothing."""

import time

import pytest

from appliance.clock import SystemClock
from appliance.clock_trust import ClockMark
from appliance.commands import box_time
from appliance.commands.console import Console
from appliance.data_directory import DataDirectory
from appliance.store.clock_marks import put_clock_mark
from appliance.tokens import Tokens
from appliance.webhooks.uptime import SystemUptime

YEAR_MS = 365 * 86_400_000
MINUTE_MS = 60_000


@pytest.fixture
def console():
    return Console(SystemClock(), Tokens(), {})


@pytest.fixture
def directory(box):
    return DataDirectory(box.data)


@pytest.fixture
def kernel(monkeypatch):
    """Whether a time server vouches for this machine's clock."""
    said = {"synchronised": False}
    monkeypatch.setattr(box_time, "kernel_is_synchronised", lambda: said["synchronised"])
    return said


@pytest.fixture
def leap(monkeypatch):
    """`leap(ms)`: this machine's clock is off by so much from now on."""
    honest = time.time_ns

    def leap(by):
        monkeypatch.setattr(time, "time_ns", lambda: honest() + by * 1_000_000)

    return leap


def remember(console, directory, boot, offset_by=0):
    """What a box that trusted its clock has written."""
    now, uptime = console.clock.now(), SystemUptime().milliseconds()
    with console.transaction(directory, "live") as tx:
        put_clock_mark(tx, ClockMark(now, boot, now - uptime + offset_by))
    return now


def told(console, directory):
    """The time of a command that writes, and of one that reads."""
    with console.transaction(directory, "test") as tx:
        written = tx.now
    with console.reading(directory, "live") as reader:
        return written, reader.now


@pytest.mark.parametrize("by", [YEAR_MS, -YEAR_MS])
def test_beside_a_clock_that_leapt_a_command_goes_by_the_boxs_own_time(
    console, directory, kernel, leap, by
):
    now = remember(console, directory, SystemUptime().boot)
    leap(by)

    for instant in told(console, directory):
        assert now <= instant < now + 10 * MINUTE_MS


def test_a_time_server_is_believed_at_once(console, directory, kernel, leap):
    now = remember(console, directory, SystemUptime().boot)
    leap(YEAR_MS)
    kernel["synchronised"] = True

    for instant in told(console, directory):
        assert instant >= now + YEAR_MS


def test_after_another_boot_nothing_is_written_before_what_is_past(
    console, directory, kernel, leap
):
    now = remember(console, directory, "another boot")
    leap(-YEAR_MS)

    for instant in told(console, directory):
        assert now <= instant < now + 10 * MINUTE_MS


def test_settings_that_cannot_be_read_keep_no_command_from_its_work(console, directory, kernel):
    directory.settings_file.write_text("[webhooks\n")

    written, read = told(console, directory)

    assert abs(written - SystemClock().now()) < 10 * MINUTE_MS
    assert abs(read - SystemClock().now()) < 10 * MINUTE_MS
