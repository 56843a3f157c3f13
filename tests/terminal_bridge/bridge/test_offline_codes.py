"""What is typed while the box is away: red only where the bridge can know that it is nobody's."""

from dataclasses import replace
from datetime import timedelta

import pytest

from terminal_bridge.bridge.offline import Known, decide_offline
from terminal_bridge.bridge.snapshot import read_snapshot
from tests.terminal_bridge.bridge.conftest import ZONES

HOUR = 3_600_000


@pytest.fixture
async def known(bridge, door):
    await door.guest(access_code="SVC-7K2M", customer_name="Sara Ben Ali")
    identity = bridge.client.identity
    snapshot = read_snapshot(await bridge.client.snapshot(), identity)
    return Known(identity, snapshot, {}, ZONES, door.clock.now())


def results(known, *codes):
    return [decide_offline(code, known).result for code in codes]


def test_on_tonights_list_a_code_is_somebodys_or_nobodys(known):
    assert results(known, "7K2M", "SVC-XXXX", "22X4") == [
        "checked_in", "unknown_code", "unknown_code"
    ]  # fmt: skip


@pytest.mark.parametrize("typed", ["ali", "Sara", "Ben Ali", "Émile", "فاطمة", "Omar"])
def test_a_name_is_for_the_box_and_no_red_light(known, typed):
    found = decide_offline(typed, known)

    assert (found.result, found.answer.colour, found.admitted) == ("needs_box", "amber", 0)


def test_on_the_list_of_last_evening_no_code_is_told(known):
    yesterday = known.snapshot.evening - timedelta(days=1)
    passes = tuple(replace(one, date=yesterday.isoformat()) for one in known.snapshot.passes)
    old = replace(known, snapshot=replace(known.snapshot, evening=yesterday, passes=passes))

    assert results(old, "7K2M", "SVC-XXXX", "22X4") == ["needs_box"] * 3


def test_on_a_list_that_is_not_fresh_who_is_not_listed_may_have_booked_since(known):
    snapshot = replace(known.snapshot, made_at=known.now - 13 * HOUR, expires_at=known.now - HOUR)
    stale = replace(known, snapshot=snapshot)

    assert results(stale, "7K2M", "SVC-XXXX") == ["old_list", "needs_box"]


def test_what_is_no_code_and_no_name_is_nobodys(known):
    assert results(known, "4006381333931", "http://elsewhere.example/x1") == ["unknown_code"] * 2


async def test_whom_a_code_was_taken_for_is_who_came_in_when_the_box_would_read_it_otherwise(
    bridge, door
):
    guest = await door.guest(access_code="SVC-DDDD")
    assert await bridge.reach()
    bridge.client.is_cut = True
    assert (await bridge.desk("QQQQ")).result == "checked_in"  # it looks like the only one
    other = await door.guest(access_code="SVC-QQQQ", table="T2")
    bridge.client.is_cut = False

    assert await bridge.reach()

    assert (await door.now_of(guest)).arrived == 1
    assert (await door.now_of(other)).arrived == 0
