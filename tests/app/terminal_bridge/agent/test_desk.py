"""Who decides a bridge's scans, and that each scan reaches the box exactly once."""

import pytest

from terminal_bridge.scanners.scanner import Undecided
from tests.clocks import StoppedClock


async def test_while_the_box_is_reachable_it_decides(bridge, door):
    text = await door.pass_of(await door.guest())
    assert await bridge.reach()

    answer = await bridge.desk(text)

    assert (answer.colour, answer.result, answer.party) == ("green", "checked_in", "1/2")
    assert await door.rows("SELECT result FROM scan_log") == [("checked_in",)]
    assert await bridge.desk.spool.list_open(1) == []


async def test_offline_decisions_survive_a_restart_and_are_uploaded_in_order(bridge, door):
    texts = [
        await door.pass_of(await door.guest(table=table, guests=1)) for table in ("T1", "T2", "T3")
    ]
    assert await bridge.reach()
    bridge.client.is_cut = True

    answers = [await bridge.desk(text) for text in (*texts, texts[0])]
    await bridge.restart()
    answers.append(await bridge.desk(texts[1]))

    assert [answer.colour for answer in answers] == ["green"] * 3 + ["amber"] * 2
    assert not await bridge.reach()
    bridge.client.is_cut = False
    assert await bridge.reach()
    assert [row[0] for row in await door.rows("SELECT result FROM scan_log ORDER BY seq")] == [
        "checked_in", "checked_in", "checked_in", "already_checked_in", "already_checked_in"
    ]  # fmt: skip
    assert bridge.desk.is_online


async def test_a_party_is_admitted_one_by_one_online_and_offline(bridge, door):
    guest = await door.guest(guests=3)
    text = await door.pass_of(guest)
    assert await bridge.reach()

    online = await bridge.desk(text)
    assert await bridge.reach()
    bridge.client.is_cut = True
    apart = [await bridge.desk(text) for _ in range(3)]
    bridge.client.is_cut = False
    assert await bridge.reach()

    assert [a.party for a in (online, *apart)] == ["1/3", "2/3", "3/3", "3/3"]
    assert [a.colour for a in apart] == ["green", "green", "amber"]
    admitted = await door.rows("SELECT admitted FROM scan_log ORDER BY seq")
    assert [row[0] for row in admitted] == [1, 1, 1, 0]
    assert (await door.now_of(guest)).arrived == 3


async def test_a_scan_whose_answer_was_lost_is_uploaded_with_the_same_id(bridge, door):
    guest = await door.guest()
    assert await bridge.reach()
    bridge.client.answers_get_lost = True

    answer = await bridge.desk(await door.pass_of(guest))

    assert answer.result == "checked_in"
    assert not await bridge.reach()
    bridge.client.answers_get_lost = False
    assert await bridge.reach()
    assert await door.rows("SELECT result, admitted FROM scan_log") == [("checked_in", 1)]
    assert (await door.now_of(guest)).arrived == 1


async def test_the_verdict_of_a_scan_before_a_crash_is_given_at_the_next_scan_of_the_pass(
    bridge, door
):
    text = await door.pass_of(await door.guest())
    assert await bridge.reach()
    now = door.clock.now()
    scan_id = await bridge.desk.spool.note("before-the-crash", text, now)
    await door.scan(text, scanId=scan_id)  # the box has decided, but the bridge is killed
    await bridge.restart()
    assert await bridge.reach()

    answer = await bridge.desk(text)

    assert answer.result == "checked_in"
    assert len(await door.rows("SELECT 1 FROM scan_log")) == 1
    assert (await bridge.desk(text)).result == "already_checked_in"


async def test_the_box_decides_again_only_after_all_offline_scans_are_uploaded(bridge, door):
    first, second = [await door.guest(table=table) for table in ("T1", "T2")]
    assert await bridge.reach()
    bridge.client.is_cut = True
    await bridge.desk(await door.pass_of(first))
    bridge.client.is_cut = False

    assert not await bridge.desk.go_online()
    await bridge.desk(await door.pass_of(second))
    assert await door.rows("SELECT 1 FROM scan_log") == []

    assert await bridge.reach()
    assert len(await door.rows("SELECT 1 FROM scan_log")) == 2


async def test_a_wrong_clock_is_corrected_for_scans_before_the_first_contact(bridge, door):
    text = await door.pass_of(await door.guest())
    assert await bridge.reach()
    await bridge.restart()
    true_time = door.clock.now()
    slow = StoppedClock()
    slow.milliseconds = true_time - 20 * 60_000
    bridge.desk._clock = slow

    await bridge.desk(text)

    assert await bridge.reach()
    rows = await door.rows("SELECT happened_at FROM scan_log")
    assert rows == [(true_time,)]


async def test_a_revoked_bridge_admits_nobody_and_deletes_its_guest_list(bridge, door):
    text = await door.pass_of(await door.guest())
    assert await bridge.reach()
    await door.environment.database.write(
        lambda tx: tx.execute("UPDATE terminal SET revoked_at = 1")
    )

    for _ in range(2):
        with pytest.raises(Undecided):
            await bridge.desk(text)

    assert await bridge.desk.spool.find_snapshot() is None
    assert await bridge.desk.spool.list_open(1) == []
    bridge.client.is_cut = True
    await bridge.restart()
    assert (await bridge.desk(text)).colour == "amber"
