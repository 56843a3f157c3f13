"""A real box with a wrong clock: nothing expires, and webhooks are sent."""

import uuid
from datetime import date, timedelta

import pytest

from appliance.clock import SystemClock, newest_zone_database
from appliance.core.tokens import Tokens
from appliance.database.integrity import session
from appliance.reservations.create import enter_for_guest
from tests.builders import a_booking
from tests.journeys.box_process import found_box
from tests.journeys.partner_side import Receiver, calling
from tests.promises.own_time import OwnTime

ENDPOINTS = ("till", "crm")
PHONE = "+212600000001"

pytestmark = [pytest.mark.slow, pytest.mark.process]


class House:
    """One evening at a box: bookings, and the calls of partner and terminal."""

    def __init__(self, partner, door, receiver):
        self.partner = partner
        self.door = door
        self.receiver = receiver
        self.booked = []

    async def look_around(self):
        """Read the evening and the tables."""
        self.evening = await self.tonight()
        self.tables = (await self.partner.must(200, "GET", "/v1/venue"))["tables"]

    async def tonight(self):
        return (await self.door.must(200, "GET", "/terminal/v1/me"))["evening"]

    async def book(self):
        """Book a table for tonight."""
        number = len(self.booked)
        body = {"tableId": self.tables[number]["id"], "date": self.evening, "guests": 2,
                "customer": {"name": "Salma", "phone": PHONE},
                "idempotencyKey": f"b{number}"}  # fmt: skip
        self.booked.append(await self.partner.must(201, "POST", "/v1/reservations", body))
        return self.booked[-1]

    async def admit(self, booked):
        """Scan the guest's code."""
        scan = {"scanId": str(uuid.uuid4()), "code": booked["accessCode"]}
        verdict = await self.door.must(200, "POST", "/terminal/v1/scans", scan)
        assert verdict["result"] == "checked_in", verdict

    async def all_is_sent(self):
        """Wait until each booking has reached each endpoint."""
        for booked in self.booked:
            id_ = booked["serviceReservationId"]
            await self.receiver.wait_for("reservation.created", id_, len(ENDPOINTS), seconds=60)

    async def rows(self):
        """Return the partner's reservations by id."""
        found = await self.partner.must(200, "GET", "/v1/reservations?limit=200")
        return {row["id"]: row for row in found["items"]}


def ask_for_tomorrow(founded):
    """Make a guest's request, which expires in a day; return its id."""
    path, zones = founded.data / "live.db", newest_zone_database()
    with session(path, SystemClock(), Tokens(), zones) as tx:
        tx.execute("UPDATE venue SET auto_confirm = 0")
        table = tx.value("SELECT id FROM venue_table ORDER BY position DESC LIMIT 1")
        day = date.today() + timedelta(days=1)  # noqa: DTZ011 - any day ahead will do
        asked = enter_for_guest(tx, a_booking(table_id=table, date=day, slot=None))
        tx.execute("UPDATE venue SET auto_confirm = 1")
    return asked.id


async def test_a_box_that_starts_with_a_wrong_clock_loses_nothing_and_sends_what_is_booked(
    tmp_path,
):
    founded, time = found_box(tmp_path, 4), OwnTime(tmp_path)
    asked = ask_for_tomorrow(founded)
    async with Receiver().running() as receiver:
        box = time.box(founded, tmp_path, receiver.settings)
        with box:
            async with calling(box, founded, "live") as (partner, door):
                house = House(partner, door, receiver)
                for name in ENDPOINTS:
                    hook = await partner.must(
                        201, "POST", "/v1/webhooks", {"url": receiver.url(name)}
                    )
                    receiver.secrets[name] = hook["secret"]
                await house.look_around()
                evening, first = house.evening, await house.book()
                await house.all_is_sent()
                for step in ("-56y", "+10y"):
                    assert box.stop() < 10
                    time.set(step)
                    box.start()
                    house.evening = await house.tonight()
                    assert (house.evening == evening) == (step == "-56y")
                    if step == "-56y":
                        await house.admit(first)
                    await house.book()
                    await house.all_is_sent()

                time.set("+0", synchronised=True)
                rows = await house.rows()
        assert rows.pop(asked)["status"] == "requested"
        assert {row["status"] for row in rows.values()} == {"confirmed"}
        assert {row["customerPhone"] for row in rows.values()} == {PHONE}
