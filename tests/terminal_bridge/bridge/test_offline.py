"""The bridge's own verdicts: those of the box wherever it can know, never greener."""

import pytest

from terminal_bridge.bridge.offline import Known, decide_offline
from terminal_bridge.bridge.snapshot import read_snapshot
from tests.terminal_bridge.bridge.conftest import ZONES

STATES = {
    "expected": {},
    "requested": {"status": "requested"},
    "pending": {"status": "pending"},
    "partial": {"status": "partial"},
    "cancelled": {"status": "cancelled"},
    "declined": {"status": "declined"},
    "inside": {"arrived": 2, "checked_in_at": 1},
    "half inside": {"arrived": 1, "checked_in_at": 1},
    "too early": {"slot": "22:00"},
    "soon": {"slot": "20:30"},
    "yesterday": {"date": "2026-11-20"},
    "tomorrow": {"date": "2026-11-22"},
}


@pytest.fixture
async def known(bridge, door):
    """What a bridge knows once the guests of the test are on the list."""

    async def know(**changes):
        signed = await bridge.client.snapshot()
        identity = bridge.client.identity
        members = {
            "identity": identity, "snapshot": read_snapshot(signed, identity), "arrived": {},
            "zones": ZONES, "now": door.clock.now(),
        }  # fmt: skip
        return Known(**(members | changes))

    return know


@pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
async def test_the_bridge_says_of_a_pass_what_the_box_says(door, known, state):
    text = await door.pass_of(await door.guest(**state))

    ours = decide_offline(text, await known())

    theirs = await door.scan(text, simulate=True, arrivals=1)
    assert (ours.result, ours.answer.colour) == (theirs["result"], theirs["colour"])
    assert ours.admitted == theirs["admitted"]


async def test_the_bridge_says_where_a_party_came_in_and_nothing_of_what_it_does_not_know(
    door, known
):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)

    alone = decide_offline(text, await known(arrived={guest.id: 2}))
    await door.scan(text)
    listed = decide_offline(text, await known())

    assert alone.answer.sentence == "Déjà entrés : 2 sur 2."
    assert listed.answer.sentence == (await door.scan(text, simulate=True))["say"]["staff"]
    assert "19:00 (Porte 1)" in listed.answer.sentence


async def test_a_code_is_found_on_the_list_and_one_that_looks_like_two_is_ambiguous(door, known):
    await door.guest(access_code="SVC-7K2M")
    await door.guest(access_code="SVC-B2B2", table="T2")
    await door.guest(access_code="SVC-8Z8Z", table="T3")

    found = await known()

    assert decide_offline("7k2m", found).result == "checked_in"
    assert decide_offline("SVC-82B2", found).result == "ambiguous"
    assert decide_offline("SVC-XXXX", found).result == "unknown_code"


async def test_a_forged_pass_a_test_pass_and_a_replaced_one_are_red(door, test_door, known):
    guest = await door.guest(generation=1)
    text = await door.pass_of(guest)
    others = await test_door.pass_of(await test_door.guest())
    await door.environment.database.write(
        lambda tx: tx.execute("UPDATE reservation SET generation = 2 WHERE id = ?", (guest.id,))
    )

    found = await known()

    assert decide_offline(
        text[:-3] + ("B" if text[-3] == "A" else "A") + text[-2:], found
    ).result == ("bad_signature")
    assert decide_offline(others, found).result == "test_code"
    assert decide_offline(text, found).result == "revoked"
    assert decide_offline("4006381333931", found).result == "unknown_code"


async def test_who_is_genuine_and_on_no_list_is_amber(door, known):
    found = await known()
    text = await door.pass_of(await door.guest())

    assert decide_offline(text, found).answer.colour == "amber"
    assert decide_offline(text, found).result == "unlisted"
    assert decide_offline(text, await known(snapshot=None)).result == "old_list"
    assert decide_offline("SVC-7K2M", await known(snapshot=None)).result == "needs_box"
    assert decide_offline("https://box.example/access/abc", found).result == "needs_box"


async def test_a_list_older_than_twelve_hours_or_of_another_clock_lets_nobody_in(door, known):
    text = await door.pass_of(await door.guest(date="2026-11-21"))
    found = await known()

    for hours, result in ((0, "checked_in"), (10.9, "checked_in"), (-1, "old_list")):
        now = found.now + round(hours * 3_600_000)
        assert decide_offline(text, await known(now=now)).result == result
    later = await known(now=found.snapshot.expires_at)
    assert decide_offline(text, later).answer.colour == "amber"


async def test_people_let_in_here_count(door, known):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)

    assert decide_offline(text, await known(arrived={guest.id: 4})).result == "already_checked_in"
    half = decide_offline(text, await known(arrived={guest.id: 3}))
    assert (half.result, half.admitted, half.answer.party) == ("party_added", 1, "4/4")


async def test_a_snapshot_that_another_signed_or_somebody_changed_is_not_read(bridge, door):
    await door.guest()
    signed = await bridge.client.snapshot()
    identity = bridge.client.identity

    assert read_snapshot(signed, identity) is not None
    for changes in (
        {"payload": signed["payload"].replace('"guests":2', '"guests":9')},
        {"kid": 77},
        {"signature": signed["signature"][:-4] + "AAAA"},
        {"signature": "!"},
        {"payload": None},
    ):
        assert read_snapshot(signed | changes, identity) is None
