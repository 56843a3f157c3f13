"""Health depends on the disk, not only on the running process."""

import asyncio
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from aiohttp.test_utils import make_mocked_request

from appliance.box import find_heartbeat, write_heartbeat
from appliance.core.errors import Unavailable
from tests.conftest import Running
from web.monitoring import Health

ASK = make_mocked_request("GET", "/health")


async def ask(running: Running, path="/health"):
    async with running.client.get(path) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("path", ["/health", "/ready"])
async def test_a_working_box_answers_only_ok(running, path):
    assert await ask(running, path) == (200, {"status": "ok"})
    for environment in running.box.environments:
        write_heartbeat = await environment.database.read(find_heartbeat)
        assert write_heartbeat == running.clock.now()


async def test_the_disk_is_tested_at_most_once_a_second_for_any_number_of_requests(
    running, monkeypatch
):
    proofs = Mock(wraps=write_heartbeat)
    monkeypatch.setattr("web.monitoring.write_heartbeat", proofs)
    databases = len(running.box.environments)
    await asyncio.gather(*(ask(running) for _ in range(20)))
    running.clock.advance(0.9)
    await ask(running)

    assert proofs.call_count == databases

    running.clock.advance(0.2)
    await ask(running)

    assert proofs.call_count == 2 * databases


async def test_a_failed_write_makes_health_unavailable_until_writes_succeed(running):
    connection = running.live.database._writer_connection
    connection.pragma("query_only", 1)
    assert (await ask(running))[0] == 503

    connection.pragma("query_only", 0)
    assert (await ask(running))[0] == 503  # a result is kept for a second

    running.clock.advance(1.1)
    assert (await ask(running))[0] == 200


async def test_a_full_disk_makes_health_unavailable_until_space_is_free(box, clock, monkeypatch):
    room = SimpleNamespace(free=0)
    monkeypatch.setattr("web.monitoring.shutil.disk_usage", lambda _: room)
    health = Health(box)
    with pytest.raises(Unavailable):
        await health.show_health(ASK)

    room.free = 1 << 30
    clock.advance(1.1)

    assert (await health.show_health(ASK)).status == 200


async def test_a_hanging_disk_makes_health_unavailable_in_time_and_starts_one_test_only(
    box, clock, monkeypatch
):
    monkeypatch.setattr("web.monitoring._DEADLINE_SECONDS", 0.05)
    health = Health(box)
    release, begun = asyncio.Event(), []

    async def hang(environment):
        begun.append(environment.name)
        await release.wait()

    health._check_database = hang
    for _ in range(3):
        with pytest.raises(Unavailable):
            await health.show_health(ASK)
        clock.advance(1.1)
    assert begun == ["live", "test"]

    release.set()
    await asyncio.sleep(0)
    assert (await health.show_health(ASK)).status == 200
