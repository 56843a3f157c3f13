"""Who comes back to the live feed hears what was missed, or is told to load again."""

import asyncio

import pytest

from appliance.live import listener
from appliance.store.reservations import update_reservation
from tests.terminal_bridge.listening import listening


async def test_who_comes_back_hears_what_was_missed_and_nothing_twice(door):
    guests = [await door.guest(table=f"T{n}") for n in (1, 2, 3)]
    async with listening(door) as ear:
        await ear.next()
        await door.scan(await door.pass_of(guests[0]))
        position = (await ear.until("check-in")).position
    await door.scan(await door.pass_of(guests[1]))  # nobody listens now

    async with listening(door, after=position) as ear:
        missed = [await ear.next(), await ear.next()]
        await door.scan(await door.pass_of(guests[2]))
        live = await ear.next()

    assert [heard.kind for heard in missed] == ["check-in", "totals"]
    assert missed[0].data["reservation"]["id"] == guests[1].id
    assert live.data["reservation"]["id"] == guests[2].id


@pytest.mark.parametrize("position", ["00000000-1", "nonsense", "-1", "", "0-" + "9" * 40])
async def test_who_comes_back_with_a_position_of_another_run_is_told_to_load_again(door, position):
    async with listening(door, after=position or "0") as ear:
        assert (await ear.next()).kind == "reset"


async def test_who_was_away_for_too_long_is_told_to_load_again(door):
    guest = await door.guest()
    async with listening(door) as ear:
        position = (await ear.next()).position

    def stir(tx):
        for _ in range(1001):
            update_reservation(tx, guest.id, notes="x")

    await door.environment.database.write(stir)

    async with listening(door, after=position) as ear:
        assert (await ear.next()).kind == "reset"


async def test_a_page_that_cannot_set_the_header_resumes_by_its_address(door):
    headers = {"Authorization": f"Bearer {door.token}"}
    url = "/terminal/v1/events?after=nonsense"
    async with door.client.get(url, headers=headers) as response:
        assert await response.content.readline() == b"event: reset\n"


async def test_the_next_evening_begins_with_loading_it(door):
    guest = await door.guest(date="2026-11-22")
    async with listening(door) as ear:
        await ear.next()
        door.clock.set("2026-11-22T06:00:00Z")

        await door.scan(await door.pass_of(guest))

        assert (await ear.next()).kind == "reset"


async def test_who_listens_too_slowly_is_told_to_load_again(door, monkeypatch):
    monkeypatch.setattr(listener, "QUEUE_LIMIT", 3)
    heard = await door.environment.feed.listen("slow", None, lambda _: True)
    guests = [await door.guest(table=f"T{n}") for n in (1, 2, 3, 4, 5)]
    texts = [await door.pass_of(guest) for guest in guests]

    for text in texts:
        await door.scan(text)
    async with asyncio.timeout(60):
        while not (taken := await told(heard)):
            pass

    assert taken[-1].kind == "reset"
    door.environment.feed.leave(heard)


async def told(heard):
    await asyncio.sleep(0.2)
    waiting = [change.kind for change in heard._waiting]
    return await heard.take(0) if "reset" in waiting else []
