"""Two doors apart let one party in: one conflict, shown to both, until somebody has seen it."""

import pytest

from appliance.store.conflicts import list_open_conflicts
from tests.terminal_bridge.apart import a_scan, sync
from tests.terminal_bridge.listening import listening


@pytest.fixture
async def there(door):
    return await door.other()


async def test_two_doors_apart_make_exactly_one_conflict_shown_to_both(door, there):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    async with listening(door) as here, listening(there) as ear:
        (first,) = await sync(door, a_scan(code=text, arrivals=4, at="2026-11-21T18:41:00Z"))
        (second,) = await sync(there, a_scan(code=text, arrivals=4, at="2026-11-21T18:52:00Z"))
        heard = [await here.until("conflict"), await ear.until("conflict")]
    _, evening = await door.call("GET", "/evening")

    assert first["conflict"] is None
    conflict = second["conflict"]
    assert (conflict["kind"], conflict["arrived"], conflict["guests"]) == ("admitted_twice", 8, 4)
    assert conflict["other"]["terminal"] == "Porte 1"
    assert conflict["other"]["at"] == "2026-11-21T18:41:00.000Z"
    assert [found.data["conflict"]["id"] for found in heard] == [conflict["id"]] * 2
    assert [found.data["conflict"]["other"]["terminal"] for found in heard] == [
        "Porte 2", "Porte 1",
    ]  # fmt: skip
    assert [found["id"] for found in evening["conflicts"]] == [conflict["id"]]
    assert await door.rows("SELECT type FROM event") == [("reservation.checked_in",)]
    assert (await door.now_of(guest)).arrived == 8


async def test_a_door_with_the_box_and_one_without_conflict_too(door, there):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    await door.scan(text)

    (result,) = await sync(there, a_scan(code=text))

    assert (result["result"], result["overrode"]) == ("party_added", "already_checked_in")
    assert result["conflict"]["arrived"] == 4


async def test_a_conflict_that_comes_to_light_the_morning_after_is_heard_too(door, there):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    await door.scan(text)
    door.clock.set("2026-11-22T09:00:00Z")
    async with listening(door) as here:
        (result,) = await sync(there, a_scan(code=text))
        heard = await here.until("conflict")

    assert heard.data["conflict"]["id"] == result["conflict"]["id"]
    assert heard.data["reservation"]["date"] == "2026-11-21"


async def test_whom_a_door_let_in_before_the_boxs_no_arrived_is_counted_and_a_conflict(door, there):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    await door.scan(text)
    late = a_scan(code=text)
    status, refused = await there.call("POST", "/scans", {"scanId": late["scanId"], "code": text})
    assert (status, refused["result"]) == (200, "already_checked_in")

    (first,) = await sync(there, late)
    (again,) = await sync(there, late)

    assert first["conflict"]["kind"] == "admitted_twice"
    assert again["conflict"]["id"] == first["conflict"]["id"]
    assert (await door.now_of(guest)).arrived == 4
    _, evening = await door.call("GET", "/evening")
    assert len(evening["conflicts"]) == 1


async def test_halves_of_a_party_at_two_doors_are_no_conflict(door, there):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    (one,) = await sync(door, a_scan(code=text, arrivals=2))

    (two,) = await sync(there, a_scan(code=text, arrivals=2))

    assert (one["conflict"], two["conflict"]) == (None, None)
    assert (await door.now_of(guest)).arrived == 4


async def test_a_party_that_was_cancelled_meanwhile_and_is_in_is_a_conflict(door):
    guest = await door.guest(status="cancelled")

    (result,) = await sync(door, a_scan(code=await door.pass_of(guest)))

    conflict = result["conflict"]
    assert (conflict["kind"], conflict["despite"]) == ("admitted_anyway", "cancelled")
    assert conflict["other"] == {
        "terminalId": None, "terminal": None, "at": "2026-11-21T18:50:00.000Z",
    }  # fmt: skip
    assert (await door.now_of(guest)).status == "cancelled"


async def test_an_acknowledged_conflict_is_open_no_longer_and_everybody_hears_of_it(door, there):
    guest = await door.guest()
    text = await door.pass_of(guest)
    await sync(door, a_scan(code=text))
    (result,) = await sync(there, a_scan(code=text))
    path = f"/conflicts/{result['conflict']['id']}/acknowledge"
    async with listening(door) as here:
        answers = [await there.call("POST", path), await there.call("POST", path)]
        heard = await here.until("conflict")

    assert [status for status, _ in answers] == [200, 200]
    assert heard.data["conflict"]["acknowledged"] is True
    assert await door.environment.database.read(list_open_conflicts) == []
    assert (await door.call("GET", "/evening"))[1]["conflicts"] == []
    assert await door.rows("SELECT acknowledged_by FROM door_conflict") == [
        (f"terminal:{there.terminal_id}",)
    ]


@pytest.mark.parametrize("name", ["nobody", "01980000-0000-7000-8000-000000000001"])
async def test_an_unknown_conflict_cannot_be_acknowledged(door, name):
    assert (await door.call("POST", f"/conflicts/{name}/acknowledge"))[0] == 404


async def test_only_who_may_override_acknowledges(door):
    there = await door.other(role="search")

    assert (await there.call("POST", "/conflicts/x/acknowledge"))[0] == 403


async def test_a_conflict_of_scans_stays_with_the_log_that_is_whole(door, there):
    guest = await door.guest()
    text = await door.pass_of(guest)
    await sync(door, a_scan(code=text, scanId="one"))
    await sync(there, a_scan(code=text, scanId="two"))

    found = await door.rows("SELECT scan_seq, other_seq, despite FROM door_conflict")

    assert found == [(2, 1, "already_checked_in")]
