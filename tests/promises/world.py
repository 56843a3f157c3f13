"""A box under load, with its clients and checks."""

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.journeys.box_process import BoxProcess, Founded, found_box
from tests.journeys.partner_side import Caller, Receiver, calling
from tests.promises.checker import History, Rows, read_rows
from tests.promises.load import Load

TABLES = 150
SETTLED_SECONDS = 30.0


@dataclass
class World:
    """A running box under load, into which tests inject faults."""

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
        """Run the load for `seconds`, then cause `fault` under full load.

        On a busy machine, wait up to a minute until `at_least` calls of each kind were granted.
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
        """Restart the box; return the seconds until its first answer."""
        begun = time.monotonic()
        await asyncio.to_thread(self.box.start)
        await self.partner.must(200, "GET", "/v1/venue")
        return time.monotonic() - begun

    async def settle(self):
        """Wait until no delivery is pending."""
        deadline = time.monotonic() + SETTLED_SECONDS
        while time.monotonic() < deadline and self.pending():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.2)

    def pending(self):
        """Return the number of pending deliveries."""
        events = self.rows().events
        return sum(one["state"] == "pending" for event in events for one in event["deliveries"])

    def contacts_in_log(self):
        """Return secrets and contact data in the box's output (I10)."""
        said = self.box.complaints()
        secrets = (*self.founded.keys.values(), *self.founded.terminals.values())
        return [one for one in (*secrets, "Bennani", "600 000 001") if one in said]


@asynccontextmanager
async def faulty_world(
    folder, seed, *, receiver=None, make_load=Load, make_box=BoxProcess, **changes
):
    """Run a box with endpoints, ready for load. `changes` are passed to `make_box`."""
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
