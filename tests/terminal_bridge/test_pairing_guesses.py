"""Whoever guesses pairs nothing, and keeps nobody from pairing (S13)."""

import asyncio

import pytest

from tests.terminal_bridge.test_pairing import offer, offer_both, pair, wrong


async def guess(door, code, times):
    """Wrong tries, each from another device."""
    for number in range(times):
        assert (await pair(door, wrong(code), f"stranger {number}"))[0] == 401


async def test_four_wrong_tries_leave_the_digits_good(door):
    code = await offer(door)
    await guess(door, code, 4)

    assert (await pair(door, code))[0] == 200


@pytest.mark.proves("S13")
async def test_five_wrong_tries_close_the_digits_of_every_open_offer_and_no_link(door):
    offers = [await offer_both(door), await offer_both(door)]
    await guess(door, offers[0].code, 5)

    assert [(await pair(door, each.code))[0] for each in offers] == [401, 401]
    assert [(await pair(door, each.secret))[0] for each in offers] == [200, 200]


async def test_wrong_tries_do_not_touch_a_code_that_is_offered_later(door):
    await guess(door, await offer(door), 5)

    assert (await pair(door, await offer(door)))[0] == 200


@pytest.mark.proves("S13")
async def test_one_device_may_try_three_times_and_closes_nothing(door):
    offered = await offer_both(door)

    tries = [await pair(door, wrong(offered.code), "stranger") for _ in range(50)]

    assert [status for status, _ in tries] == [401] * 3 + [429] * 47
    assert tries[-1][1]["code"] == "RATE_LIMITED"
    assert await door.rows("SELECT tries FROM pairing") == [(3,)]
    assert (await pair(door, offered.code, "Nora"))[0] == 200


@pytest.mark.proves("S13")
async def test_a_hundred_tries_of_one_device_at_once_are_three(door):
    code = await offer(door)

    tries = await asyncio.gather(*(pair(door, wrong(code), "stranger") for _ in range(100)))

    assert sorted(status for status, _ in tries) == [401] * 3 + [429] * 97


async def test_a_device_that_must_wait_still_pairs_by_the_link_and_in_ten_minutes_by_digits(door):
    by_link = await offer_both(door)
    for _ in range(4):
        await pair(door, wrong(by_link.code), "Nora")
    assert (await pair(door, by_link.code, "Nora"))[0] == 429
    assert (await pair(door, by_link.secret, "Nora"))[0] == 200

    door.clock.advance(600)

    assert (await pair(door, await offer(door), "Nora"))[0] == 200


async def test_right_digits_are_no_tries(door):
    for _ in range(5):
        assert (await pair(door, await offer(door), "Nora"))[0] == 200


@pytest.mark.proves("S13")
async def test_a_thousand_wrong_secrets_count_against_nothing_and_write_nothing(door):
    offered = await offer_both(door)
    commits = door.environment.database.commits

    for number in range(1000):
        assert (await pair(door, f"{number:043d}", "stranger"))[0] == 401

    assert door.environment.database.commits == commits
    assert (await pair(door, offered.code, "stranger"))[0] == 200


async def test_the_link_of_an_offer_and_its_digits_are_one_offer(door):
    first, second = await offer_both(door), await offer_both(door)
    assert (await pair(door, first.secret))[0] == 200
    assert (await pair(door, second.code))[0] == 200

    assert (await pair(door, first.code))[0] == 401
    assert (await pair(door, second.secret))[0] == 401


async def test_a_link_dies_after_ten_minutes_and_works_in_its_own_environment(door, test_door):
    offered = await offer_both(door)
    assert (await pair(test_door, offered.secret))[0] == 401

    door.clock.advance(600)

    assert (await pair(door, offered.secret))[0] == 401
