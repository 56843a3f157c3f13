"""A bridge whose network is cut: it decides offline, and sends its decisions later."""

import asyncio
import json

import aiohttp
import pytest

from tests.journeys.box_process import BoxProcess, found_box, venuebox
from tests.journeys.bridge_process import BridgeProcess, Scanner, Wire, book, select
from tests.journeys.partner_side import calling

SYNCED_SECONDS = 40.0
READER = '[[readers]]\nkind = "tcp"\nport = 7070\n'


async def test_an_offline_bridge_decides_by_itself_and_uploads_every_scan_later(tmp_path):
    founded = await asyncio.to_thread(found_box, tmp_path, 4)
    box = BoxProcess(founded.data, log=tmp_path / "box.log")
    scanner = Scanner()
    await asyncio.to_thread(box.start)
    network = Wire(box)
    bridge = BridgeProcess(tmp_path / "bridge", scanner)
    try:
        await network.mend()
        async with (
            calling(box, founded, "live") as (partner, door),
            aiohttp.ClientSession() as session,
        ):
            one, two, three, _ = await book(partner, door, session, box, 4)
            await pair(founded, box, bridge, network)
            await bridge.is_told("the box decides")
            assert await scanner.show(one[2]) == "G"

            await network.cut()
            assert await scanner.show(two[2]) == "G"
            assert await scanner.show(two[1]) == "A"
            assert await scanner.show(one[1]) == "A"
            assert await scanner.show(forged(two[2])) == "R"

            await asyncio.to_thread(bridge.kill)
            await asyncio.to_thread(bridge.start)
            assert await shown(scanner, two[2]) == "A"
            assert await scanner.show(three[2]) == "G"
            theirs = {"scanId": "meanwhile", "code": three[2]}
            elsewhere = await door.must(200, "POST", "/terminal/v1/scans", theirs)
            assert elsewhere["result"] == "checked_in"

            await network.mend()
            await bridge.is_told("the box decides", times=2, seconds=SYNCED_SECONDS)
            assert await asyncio.to_thread(bridge.stop) == 0
    finally:
        bridge.kill()
        box.kill()
        await network.close()
        scanner.close()

    spooled = bridge.spooled()
    assert all(settled for _, _, _, settled, _ in spooled)
    assert [remark for *_, remark in spooled if remark] == ["conflict"]
    logged = [row[0] for row in select(founded.data / "live.db", "SELECT scan_id FROM scan_log")]
    assert sorted(logged) == sorted(["meanwhile", *(scan_id for scan_id, *_ in spooled)])
    arrived = dict(select(founded.data / "live.db", "SELECT id, arrived FROM reservation"))
    assert [arrived[guest[0]] for guest in (one, two, three)] == [1, 1, 2]


async def pair(founded, box, bridge, network):
    """Pair the bridge by a one-time code."""
    argv = ("terminal", "pair", "--environment", "live", "--name", "Jardin", "--json")
    code = json.loads(await asyncio.to_thread(venuebox, *argv, data=founded.data))["code"]
    await asyncio.to_thread(
        bridge.start, "--box", network.address, "--pair", code, "--name", "Jardin"
    )


async def shown(scanner, code):
    """Scan until there is a verdict, because a scanner that was just opened drops input."""
    while (letter := await scanner.show(code, 2.5)) is None:
        pass
    return letter


def forged(text):
    """Return the pass with its second last character changed."""
    return text[:-3] + ("B" if text[-3] == "A" else "A") + text[-2:]


async def test_a_bridge_that_cannot_start_says_why_without_a_traceback(tmp_path):
    folder = tmp_path / "bridge"
    pairing = ("--box", "http://127.0.0.1:9", "--pair", "12345678")
    for settings, argv in (("", pairing), (READER, ()), (READER, pairing)):
        folder.mkdir(exist_ok=True)
        (folder / "settings.toml").write_text(settings, "utf-8")
        with pytest.raises(AssertionError) as refused:
            await asyncio.to_thread(venuebox, "bridge", *argv, data=folder)
        assert "Traceback" not in str(refused.value)
    with pytest.raises(AssertionError, match="no scanner"):
        await asyncio.to_thread(venuebox, "bridge", data=tmp_path / "mistyped")
    assert not (tmp_path / "mistyped").exists()
