"""A box under load, with everything that watches it from outside."""

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.faults.checker import History, Rows, read_rows
from tests.faults.load import Load
from tests.journeys.box_process import BoxProcess, Founded, found_box
from tests.journeys.partner_side import Caller, Receiver, calling

TABLES = 150
SETTLED_SECONDS = 30.0


@dataclass
class World:
    """What a fault is tried on."""

    founded: Founded
    box: BoxProcess
    history: History
    receiver: Receiver
    load: Load
    partner: Caller
    door: Caller

    def rows(self) -> Rows:
        return read_rows(self.founded.data / "live.db")

    async def load_until(self, seconds, fault, *, at_least=0):
        """Work for so long, and then let `fault` happen under full load.

        A busy machine is given a minute until `at_least` so many calls of each kind were granted.
        """
        working = asyncio.create_task(self.load.run(self.partner, self.door))
        await asyncio.sleep(seconds)
        async with asyncio.timeout(60):
            while min(self.history.count().values()) < at_least:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)
        assert not working.done(), "the load ended before the fault"
        status = await asyncio.to_thread(fault)
        self.load.stop()
        await working
        return status

    async def restart(self):
        """Start the box again; the seconds from there to its first answer."""
        begun = time.monotonic()
        await asyncio.to_thread(self.box.start)
        await self.partner.must(200, "GET", "/v1/venue")
        return time.monotonic() - begun

    async def settle(self):
        """Wait until nothing is on its way."""
        deadline = time.monotonic() + SETTLED_SECONDS
        while time.monotonic() < deadline and self.pending():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.2)

    def pending(self):
        """How many deliveries are on their way."""
        events = self.rows().events
        return sum(one["state"] == "pending" for event in events for one in event["deliveries"])

    def contacts_in_log(self):
        """I10: secrets and guests' contacts in what the box said."""
        said = self.box.complaints()
        secrets = (*self.founded.keys.values(), *self.founded.terminals.values())
        return [one for one in (*secrets, "Bennani", "600 000 001") if one in said]


@asynccontextmanager
async def faulty_world(
    folder, seed, *, receiver=None, make_load=Load, make_box=BoxProcess, **changes
):
    """A running box with endpoints, ready for load. `changes` are handed to `make_box`."""
    receiver = receiver or Receiver()
    async with receiver.running():
        founded = await asyncio.to_thread(found_box, folder, TABLES)
        box = make_box(founded.data, log=folder / "box.log", settings=receiver.settings, **changes)
        try:
            await asyncio.to_thread(box.start)
            async with calling(box, founded, "live") as (partner, door):
                history = History()
                load = make_load(history, receiver, seed)
                await load.prepare(partner, door)
                yield World(founded, box, history, receiver, load, partner, door)
        finally:
            box.kill()
