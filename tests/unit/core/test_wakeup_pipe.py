"""The pipe through which commands wake the running box."""

import asyncio
import os
import stat

import pytest

from appliance.core.data_directory import listen_for_wakeups, wake_box
from appliance.database.database import ChangedBeside


@pytest.fixture
def pipe(tmp_path):
    return tmp_path / "poke"


async def test_simultaneous_wakeups_wake_the_box_at_least_once(pipe):
    heard = []
    with listen_for_wakeups(pipe, lambda: heard.append(1)):
        assert wake_box(pipe)
        await asyncio.sleep(0.05)
        assert heard == [1]

        assert all(wake_box(pipe) for _ in range(1000))
        await asyncio.sleep(0.05)

        assert 2 <= len(heard) <= 1001


async def test_a_wakeup_to_a_stopped_box_is_lost_without_waiting(pipe):
    assert not wake_box(pipe)

    with listen_for_wakeups(pipe, lambda: None):
        pass

    assert not wake_box(pipe)
    assert not pipe.exists()


async def test_a_pipe_left_by_a_crashed_box_does_not_count_as_a_listener_and_is_replaced(pipe):
    heard = []
    os.mkfifo(pipe)
    assert not wake_box(pipe)

    with listen_for_wakeups(pipe, lambda: heard.append(1)):
        assert stat.S_IMODE(pipe.stat().st_mode) == 0o600
        assert wake_box(pipe)
        await asyncio.sleep(0.05)

    assert heard == [1]


async def test_a_wakeup_notifies_the_listeners_of_both_environments(box):
    told = []
    for environment in box.environments:
        environment.database.on_commit(told.extend)

    box.look_for_changes()

    assert [type(notice) for notice in told] == [ChangedBeside, ChangedBeside]
