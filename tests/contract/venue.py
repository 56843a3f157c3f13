"""Actions of staff, guests and the owner, which partners cannot do through the interface.

The tests of the contract use HTTP. Only this file uses the code of the product.
"""

import json

import pytest

from appliance.api_keys import SCOPES, list_keys, rotate_key
from appliance.door.terminals import issue_terminal
from appliance.privacy import erase_guest
from appliance.reservations.change import (
    Amendment,
    accept,
    amend_reservation,
    cancel,
    decline,
    move_to_table,
)
from appliance.reservations.create import enter_by_staff, enter_for_guest
from appliance.reservations.rows import get_reservation
from appliance.webhooks.endpoints import roll_secret
from tests.builders import a_booking, a_key, table_id
from tests.conftest import Running

BY = "staff:yasmine"


class Venue:
    """The venue that a partner's key belongs to, in the live or the test environment."""

    def __init__(self, running: Running, environment: str = "live") -> None:
        self._running = running
        self._environment = getattr(running, environment)
        self._database = self._environment.database

    async def guest_books(self, table: str = "T1", **changes: object) -> str:
        """Create a reservation with the source `platform`. Return its id."""
        booking = a_booking(table_id=table_id(table), **changes)
        return (await self._database.write(enter_for_guest, booking)).id

    async def guest_requests(self, table: str = "T1", **changes: object) -> str:
        """Create an unanswered request with the source `platform`. Return its id."""
        await self.change(auto_confirm=0)
        return await self.guest_books(table, **changes)

    async def accept(self, reservation_id: str) -> None:
        """Accept a request as staff."""
        await self._database.write(accept, reservation_id, actor=BY)

    async def decline(self, reservation_id: str) -> None:
        """Decline a request as staff."""
        await self._database.write(decline, reservation_id, actor=BY)

    async def cancel(self, reservation_id: str) -> None:
        """Cancel a reservation as staff."""
        await self._database.write(cancel, reservation_id, actor=BY)

    async def let_in(self, access_code: str) -> None:
        """Scan the guest's code at a terminal, which admits the guest."""
        _, token = await self._database.write(issue_terminal, "Porte")
        scan = {"scanId": "1", "code": access_code}
        _, verdict, _ = await self._running.call("POST", "/terminal/v1/scans", key=token, json=scan)
        assert verdict["result"] == "checked_in"

    async def staff_book(self, table: str = "T1", **changes: object) -> str:
        """Create a reservation as staff. Return its id."""
        booking = a_booking(table_id=table_id(table), **changes)
        return (await self._database.write(enter_by_staff, booking, actor=BY)).id

    async def move(self, reservation_id: str, table: str) -> None:
        """Move the party to another table as staff."""
        await self._database.write(move_to_table, reservation_id, table_id(table), actor=BY)

    async def amend(self, reservation_id: str, guests: int) -> None:
        """Change the number of guests as staff."""
        old = await self._database.read(get_reservation, reservation_id)
        party = Amendment(guests, old.customer_name, None, old.customer_phone, None)
        await self._database.write(amend_reservation, reservation_id, party, actor=BY)

    async def put(self, reservation_id: str, **values: object) -> None:
        """Bring the reservation into a state in any way."""
        names = ", ".join(f"{name} = :{name}" for name in values)
        await self._execute(
            f"UPDATE reservation SET {names} WHERE id = :id",  # noqa: S608 - columns of the test
            id=reservation_id, **values,
        )  # fmt: skip

    async def erase(self, reservation_id: str) -> None:
        """Erase the guest's data, as the guest requested."""
        await self._database.write(lambda tx: erase_guest(tx, reservation_id, actor="guest"))

    async def change(self, **values: object) -> None:
        """Change the venue as the owner."""
        names = ", ".join(f"{name} = :{name}" for name in values)
        await self._execute(f"UPDATE venue SET {names}", **values)  # noqa: S608 - as above

    async def change_table(self, number: str, type_: str) -> None:
        """Change the type of a table as the owner."""
        await self._execute(
            "UPDATE venue_table SET type = :type WHERE number = :number", type=type_, number=number
        )

    async def offer(self, start: str, end: str) -> None:
        """Add a daily slot as the owner."""

        def action(tx):
            slot = {"id": tx.new_id(), "position": 9, "name": start, "start": start, "end": end}
            tx.insert("slot", slot | {"days_of_week": json.dumps(list(range(7)))})

        await self._database.write(action)

    async def issue_key(self, *scopes: str) -> str:
        """Create a key of another partner, with all scopes or the given ones."""
        return await a_key(self._environment, scopes or SCOPES)

    async def rotate_key(self) -> str:
        """Create the successor of the partner's key. The old key still works."""
        key_id = self._database.peek(list_keys)[0].id
        rotated = await self._database.write(rotate_key, self._environment.name, key_id, ends=False)
        return rotated.key

    async def roll_secret(self, endpoint_id: str) -> None:
        """Give an endpoint a new secret as the owner."""
        await self._database.write(roll_secret, self._environment.keyring, endpoint_id)

    async def bury(self, delivery_id: str, occurred_at: int) -> None:
        """Insert a dead delivery of an event that occurred at `occurred_at` (ms)."""
        await self._execute(
            "UPDATE delivery SET state = 'dead', attempts = 6, finished_at = :at WHERE id = :id",
            id=delivery_id, at=self._database.clock.now(),
        )  # fmt: skip
        await self._execute(
            "UPDATE event SET occurred_at = :at"
            " WHERE seq = (SELECT event_seq FROM delivery WHERE id = :id)",
            id=delivery_id, at=occurred_at,
        )  # fmt: skip

    async def events(self) -> list[str]:
        """Return the types of all events in order."""
        return [row[0] for row in await self._rows("SELECT type FROM event ORDER BY seq")]

    async def emails(self) -> list[tuple[str, str]]:
        """Return (kind, language) of each email to a guest."""
        return await self._rows("SELECT kind, language FROM email ORDER BY rowid")

    async def _execute(self, sql: str, **values: object) -> None:
        await self._database.write(lambda tx: tx.execute(sql, values))

    async def _rows(self, sql: str) -> list:
        return await self._database.read(lambda reader: list(reader.rows(sql)))


@pytest.fixture
def venue(running):
    """The live venue."""
    return Venue(running)


@pytest.fixture
def sandbox(running):
    """The venue of the test environment."""
    return Venue(running, "test")
