"""Time, terminal and person of the first check-in are those of one admission that still stands."""

from tests.terminal_bridge.apart import a_scan, sync


async def test_an_admission_that_was_taken_back_lends_no_time_to_another_door(door):
    there = await door.other()
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    await door.scan(text, scanId="one", arrivals=2)
    door.clock.advance(1800)
    await there.scan(text)
    await door.call("POST", "/scans/one/undo", {"reason": "mauvaise table"})
    await there.scan(text)

    verdict = await door.scan(text)

    assert verdict["result"] == "already_checked_in"
    assert verdict["firstCheckIn"] == {
        "at": "2026-11-21T19:30:00.000Z", "terminal": "Porte 2", "by": None,
    }  # fmt: skip
    assert "19:30" in verdict["say"]["staff"]


async def test_of_who_came_in_apart_it_is_when_it_happened_and_not_when_the_box_heard(door):
    there = await door.other()
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    await sync(there, a_scan(code=text))

    verdict = await door.scan(text)

    assert verdict["firstCheckIn"] == {
        "at": "2026-11-21T18:50:00.000Z", "terminal": "Porte 2", "by": None,
    }  # fmt: skip
