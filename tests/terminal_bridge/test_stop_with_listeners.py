"""The real program stops while terminals listen, and a command beside it revokes one."""

import asyncio

import aiohttp

from tests.journeys.box_process import BoxProcess, found_box, venuebox
from tests.terminal_bridge.many_doors import expect

PROMISED_SECONDS = 10.0


async def read_until_over(client, terminal, heard, kind=None):
    """Note the kinds of events until that one, or until the stream is over."""
    headers = {"Authorization": f"Bearer {terminal.token}"}
    async with client.get("/terminal/v1/events", headers=headers) as stream:
        async for line in stream.content:
            if line.startswith(b"event: "):
                heard.append(line.decode().split()[1])
                if heard[-1] == kind:
                    return


async def until_all_listen(*all_heard):
    for _ in range(3000):
        if all(all_heard):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("not all of them listen")


async def test_a_stop_waits_for_no_listener(tmp_path):
    crowd = expect(found_box(tmp_path).data, 1, 1)
    with BoxProcess(crowd.data, log=tmp_path / "box.log") as box:
        async with aiohttp.ClientSession(box.address) as client:
            heard = [[] for _ in crowd.terminals]
            ears = [
                asyncio.create_task(read_until_over(client, terminal, kinds))
                for terminal, kinds in zip(crowd.terminals, heard, strict=True)
            ]
            await until_all_listen(*heard)

            took = await asyncio.to_thread(box.stop)

            await asyncio.gather(*ears)
    print(f"\nleft after {took:.2f} s")
    assert took < PROMISED_SECONDS
    assert heard == [["totals"]] * len(crowd.terminals)
    assert box.complaints() == ""


async def test_a_terminal_that_a_command_revokes_hears_of_it_at_once(tmp_path):
    crowd = expect(found_box(tmp_path).data, 1, 1)
    with BoxProcess(crowd.data, log=tmp_path / "box.log") as box:
        async with aiohttp.ClientSession(box.address) as client, asyncio.timeout(60):
            one, other = crowd.terminals[:2]
            heard, spared = [], []
            ears = [
                asyncio.create_task(read_until_over(client, one, heard)),
                asyncio.create_task(read_until_over(client, other, spared, "reset")),
            ]
            await until_all_listen(heard, spared)
            revoke = ("terminal", "revoke", one.id)
            await asyncio.to_thread(lambda: venuebox(*revoke, data=crowd.data))
            await asyncio.gather(*ears)

    assert heard == ["totals", "reset", "revoked"]
    assert spared == ["totals", "reset"]
