"""Typed codes that come by /sync are guesses like those before the box (S10)."""

import pytest

from tests.terminal_bridge.apart import a_scan, sync

CODE = "SVC-7K2M"


def guesses(count, **members):
    return [a_scan(code="2222", scanId=f"guess-{n}", **members) for n in range(count)]


async def typed(door, code):
    return await door.call("POST", "/scans", {"scanId": "typed", "code": code})


@pytest.mark.proves("S10")
@pytest.mark.parametrize("shown", [None, "unknown_code", "not_yet", "checked_in"])
async def test_after_ten_wrong_codes_the_right_one_tells_nothing(door, shown):
    there = await door.other(role="scan")
    await door.guest(access_code=CODE)

    *wrong, right = await sync(
        there, *guesses(10, shown=shown), a_scan(code=CODE, shown=shown, scanId="right")
    )

    assert {one["result"] for one in wrong} == {"unknown_code"}
    assert (right["result"], right["admitted"]) == ("unknown_code", 0)
    assert right["reservation"] is None
    assert (await typed(there, CODE))[0] == 429


@pytest.mark.parametrize("shown", [None, "checked_in"])
async def test_codes_typed_before_the_box_count_too(door, shown):
    await door.guest(access_code=CODE)
    for _ in range(10):
        await door.scan("2222")

    (result,) = await sync(door, a_scan(code=CODE, shown=shown))

    assert (result["result"], result["reservation"]) == ("unknown_code", None)


async def test_a_guess_a_minute_later_is_looked_up_again(door):
    await door.guest(access_code=CODE)
    await sync(door, *guesses(10))
    door.clock.advance(61)

    (result,) = await sync(door, a_scan(code=CODE, shown=None))

    assert result["result"] == "checked_in"


async def test_a_wrong_code_that_is_sent_again_is_one_guess(door):
    await door.guest(access_code=CODE)
    for _ in range(12):
        await sync(door, *guesses(1))

    assert (await typed(door, CODE))[1]["result"] == "checked_in"


async def test_passes_and_named_guests_are_taken_in_whatever_was_typed(door):
    one, two = await door.guest(), await door.guest(table="T2")

    results = await sync(
        door,
        *guesses(12, shown="unknown_code"),
        a_scan(code=await door.pass_of(one), scanId="pass"),
        a_scan(reservationId=two.id, code=CODE, scanId="named"),
    )

    assert [result["result"] for result in results[12:]] == ["checked_in"] * 2
    assert await door.rows("SELECT count(*) FROM scan") == [(14,)]


@pytest.mark.proves("S10")
async def test_whom_a_code_let_in_meanwhile_is_a_conflict_and_not_lost(door):
    await door.guest(access_code=CODE)
    await sync(door, *guesses(10, shown="unknown_code"))

    (result,) = await sync(door, a_scan(code=CODE, scanId="let-in"))

    assert (result["conflict"]["kind"], result["conflict"]["reservationId"]) == (
        "admitted_anyway", None,
    )  # fmt: skip
    assert await door.rows("SELECT count(*) FROM door_conflict") == [(1,)]
    assert (await sync(door, a_scan(code=CODE, scanId="let-in"))) == [result]
