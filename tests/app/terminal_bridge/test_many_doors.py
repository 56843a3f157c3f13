"""Eight terminals at one real box agree, and stopping the box does not wait for them."""

import asyncio
import random

import aiohttp
import pytest

from tests.app.terminal_bridge.many_doors import complaints, expect, storm
from tests.journeys.box_process import STOP_SECONDS, BoxProcess, found_box

pytestmark = [pytest.mark.process, pytest.mark.slow]


async def test_eight_terminals_with_retries_admit_each_party_once_and_get_the_same_events(tmp_path):
    seed = random.randrange(10**6)
    print(f"\nseed {seed}")
    crowd = expect(found_box(tmp_path).data, 100, seed)

    with BoxProcess(crowd.data, log=tmp_path / "box.log") as box:
        evening = await storm(crowd, box.address, 250, seed)

        assert complaints(crowd, evening) == []
        assert box.stop() < STOP_SECONDS
    assert box.complaints() == ""


async def read_until_over(client, terminal, heard, kind=None):
    """Record the types of events until this one or the end of the stream."""
    headers = {"Authorization": f"Bearer {terminal.token}"}
    async with client.get("/terminal/v1/events", headers=headers) as stream:
        async for line in stream.content:
            if line.startswith(b"event: "):
                heard.append(line.decode().split()[1])
                if heard[-1] == kind:
                    return


async def test_stopping_the_box_does_not_wait_for_listeners(tmp_path):
    crowd = expect(found_box(tmp_path).data, 1, 1)
    heard = [[] for _ in crowd.terminals]
    with BoxProcess(crowd.data, log=tmp_path / "box.log") as box:
        async with aiohttp.ClientSession(box.address) as client, asyncio.timeout(60):
            ears = [
                asyncio.create_task(read_until_over(client, terminal, kinds))
                for terminal, kinds in zip(crowd.terminals, heard, strict=True)
            ]
            while not all(heard):  # noqa: ASYNC110 - tasks beside fill it
                await asyncio.sleep(0.02)
            assert await asyncio.to_thread(box.stop) < STOP_SECONDS
            await asyncio.gather(*ears)

    assert heard == [["totals"]] * len(crowd.terminals)
    assert box.complaints() == ""
