"""The totals that the feed keeps running are those of the evening, counted anew."""

import random

import pytest

from appliance.actions.cancel import cancel
from appliance.errors import Refusal
from appliance.store.database import ChangedBeside
from appliance.store.reservations import update_reservation
from tests.terminal_bridge.listening import listening

TONIGHT, TOMORROW = "2026-11-21", "2026-11-22"


class Evening:
    """A door, and what may happen to whomever it meets."""

    def __init__(self, door, chance):
        self.door, self.chance, self.guests = door, chance, []
        # A place is one guest's on either day, so that whoever is moved is in nobody's way.
        self.places = [(f"T{table}", f"{hour:02d}:00") for table in (1, 2, 3) for hour in range(24)]
        chance.shuffle(self.places)

    async def book(self, **values):
        table, slot = self.places.pop()
        values = {
            "date": self.chance.choice([TONIGHT, TOMORROW]),
            "status": self.chance.choice(["confirmed", "confirmed", "requested", "declined"]),
            **values,
        }
        guests = self.chance.randint(1, 4)
        self.guests.append(await self.door.guest(table=table, slot=slot, guests=guests, **values))
        return self.guests[-1]

    async def come_in(self):
        text = await self.door.pass_of(self.chance.choice(self.guests))
        await self.door.scan(text, arrivals=self.chance.randint(1, 2))

    async def cancel(self):
        await self._write(cancel, self.chance.choice(self.guests).id, actor="box")

    async def move(self):
        guest = self.chance.choice(self.guests)
        day = self.chance.choice([TONIGHT, TOMORROW])
        await self._write(update_reservation, guest.id, date=day)

    async def _write(self, action, *args, **values):
        try:
            await self.door.environment.database.write(action, *args, **values)
        except Refusal:  # whoever is in is not cancelled
            return


@pytest.mark.parametrize("seed", range(4))
async def test_the_totals_told_are_those_of_the_list_whatever_happened(door, seed):
    evening = Evening(door, random.Random(seed))
    await evening.book()
    for _ in range(4):  # who listens comes and goes, and the evening goes on without them
        for _ in range(3):
            await evening.chance.choice([evening.book, evening.come_in, evening.cancel])()
        async with listening(door) as ear:
            assert (await ear.next()).data["totals"] == await counted(door)
            for _ in range(6):
                happens = [evening.book, evening.come_in, evening.cancel, evening.move]
                await evening.chance.choice(happens)()
            last = await evening.book(date=TONIGHT, status="confirmed")

            heard = await ear.next()
            while heard.data["reservation"]["id"] != last.id:
                heard = await ear.next()
            assert heard.data["totals"] == await counted(door)


async def test_after_more_changes_than_are_remembered_the_evening_is_counted_anew(door):
    feed = door.environment.feed
    guest = await door.guest(guests=3)
    async with listening(door) as ear:
        await ear.next()
    feed._remembered.clear()
    await door.environment.database.write(update_reservation, guest.id, guests=4)
    feed._remembered.clear()

    async with listening(door) as ear:
        assert (await ear.next()).data["totals"]["expected"]["people"] == 4


async def test_what_a_command_beside_the_box_changed_is_counted(door):
    environment = door.environment
    guest = await door.guest(guests=3)
    async with listening(door) as ear:
        await ear.next()
        # As a command would: the feed hears nothing of what it changed.
        feed, environment.database._listeners = environment.database._listeners, []
        await environment.database.write(update_reservation, guest.id, guests=5)
        environment.database._listeners = feed
        environment.database._tell([ChangedBeside()])
        assert (await ear.next()).kind == "reset"

        await door.guest(table="T2", guests=2)

        assert (await ear.next()).data["totals"]["expected"]["people"] == 7


async def counted(door):
    _, evening = await door.call("GET", "/evening")
    return evening["totals"]
