"""A venue in this process whose dispatcher is measured: bookings, and when they were committed."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from appliance.clock import SystemClock
from appliance.environment import Environment
from appliance.outbox import announce
from appliance.reservations.rows import insert_reservation
from appliance.webhooks.client import Budgets
from appliance.webhooks.deliveries import cancel_pending
from appliance.webhooks.dispatcher import Dispatcher, make_dependencies
from appliance.webhooks.endpoints import register_endpoint
from tests.builders import TONIGHT, table_id
from tests.conftest import opened_box, with_settings

Target = tuple[str, str, str, bool]  # what, target, found, held
_PER_EVENING = 500  # reservations of one minute each


@dataclass
class Sender:
    """An environment with endpoints, and its dispatcher."""

    environment: Environment
    dispatcher: Dispatcher
    committed: dict[str, float] = field(default_factory=dict)  # reservation -> instant
    waits: list[float] = field(default_factory=list)  # of bookings, in seconds
    _booked: int = 0

    async def queue(self, count: int) -> None:
        """Write so many bookings, each with its deliveries."""
        for start in range(0, count, 200):
            some = min(200, count - start)
            await self.environment.database.write(_book, self._booked, some)
            self._booked += some

    async def book(self) -> str:
        """One booking, noted when its commit was answered."""
        begun = time.monotonic()
        [reservation_id] = await self.environment.database.write(_book, self._booked, 1)
        now = time.monotonic()
        self._booked += 1
        self.waits.append(now - begun)
        self.committed[reservation_id] = now
        return reservation_id

    async def give_up(self, place: int) -> None:
        """Cancel what the endpoint that was registered as `place` has not received."""
        await self.environment.database.write(_give_up, place)

    async def drained(self) -> None:
        """Wait until no delivery is pending."""
        while self.environment.database.peek(_pending):  # noqa: ASYNC110 - looked at from outside
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def a_sender(
    folder: Path, urls: list[str], budgets: Budgets | None = None
) -> AsyncIterator[Sender]:
    """A fresh venue whose endpoints are `urls`; its dispatcher is closed, not started."""
    clock = SystemClock()
    settings = with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "allow_http": True})
    await asyncio.to_thread(folder.mkdir)
    async with opened_box(folder, clock, settings) as box:  # type: ignore[arg-type]
        environment = box.test
        for url in urls:
            await environment.database.write(
                register_endpoint, environment.keyring, url, ("reservation.created",)
            )
        outside = make_dependencies(settings.webhooks, box.clock)
        outside = dataclasses.replace(outside, budgets=budgets or outside.budgets)
        sender = Sender(environment, Dispatcher(environment, outside))
        try:
            yield sender
        finally:
            await sender.dispatcher.close(0.0)


def _book(tx: Any, start: int, count: int) -> list[str]:
    ids = []
    for number in range(start, start + count):
        evening, minute = divmod(number, _PER_EVENING)
        row = {
            "id": tx.new_id(), "status": "confirmed", "source": "partner",
            "table_id": table_id("T1"), "slot": "19:30", "starts": minute, "ends": minute + 1,
            "date": str(dt.date.fromisoformat(TONIGHT) + dt.timedelta(days=evening)),
            "guests": 2, "customer_name": "Salma Idrissi", "pass_id": tx.tokens.random_bytes(8),
            "external_ref": "partner-0001", "link_expires_at": tx.now, "created_at": tx.now,
            "updated_at": tx.now,
        }  # fmt: skip
        insert_reservation(tx, row)
        announce(tx, "reservation.created", row["id"])
        ids.append(row["id"])
    return ids


def _give_up(tx: Any, place: int) -> None:
    [endpoint_id] = tx.row(
        "SELECT id FROM endpoint ORDER BY rowid LIMIT 1 OFFSET :place", {"place": place}
    )
    cancel_pending(tx, endpoint_id)


def _pending(reader: Any) -> object:
    return reader.value("SELECT EXISTS (SELECT 1 FROM delivery WHERE state = 'pending')")
