"""A real box with a wrong clock: nothing expires, and guests are still admitted."""

import asyncio
import subprocess
import uuid
from datetime import date, timedelta

import pytest

from appliance.clock import SystemClock, newest_zone_database
from appliance.core.tokens import Tokens
from appliance.database.integrity import session
from appliance.reservations.create import enter_for_guest
from tests.builders import a_booking
from tests.journeys.box_process import PROGRAM, ZONE, clean_environ, found_box
from tests.journeys.partner_side import Receiver, calling
from tests.promises.checker import read_rows
from tests.promises.own_time import OwnTime

ENDPOINTS = ("till", "crm")
PHONE = "+212600000001"
STEPS = ("+1y", "-30d", "-56y")

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


async def test_a_clock_that_leaps_while_it_runs_or_is_off_loses_nothing_and_the_door_admits(
    tmp_path,
):
    founded, time = found_box(tmp_path, 14), OwnTime(tmp_path)
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
                for step in STEPS:
                    receiver.open.clear()
                    under_way = await house.book()
                    id_ = under_way["serviceReservationId"]
                    await receiver.wait_for("reservation.created", id_, len(ENDPOINTS), seconds=60)

                    time.set(step)
                    held = await house.book()
                    receiver.open.set()

                    assert await house.tonight() == house.evening
                    await house.admit(under_way)
                    await house.admit(held)
                    time.set("+0")
                    await house.admit(await house.book())
                    await deliver_all(house)

                for step in STEPS:
                    held = await house.book()
                    assert await asyncio.to_thread(box.stop) < 10  # the receiver answers meanwhile
                    time.set(step)
                    box.start()
                    assert await house.tonight() == house.evening
                    await house.admit(held)
                time.set("+0", synchronised=True)
                await house.book()
                await deliver_all(house)

                rows = await house.rows()
            assert box.stop() < 10  # this writes the last outcomes
        assert all(one.signature_held for one in receiver.received)  # so each `t` was valid
        assert rows.pop(asked)["status"] == "requested"
        assert {row["status"] for row in rows.values()} == {"confirmed"}
        assert {row["customerPhone"] for row in rows.values()} == {PHONE}
        deliveries = [
            d for e in read_rows(founded.data / "live.db").events for d in e["deliveries"]
        ]
        assert {(d["state"], d["attempts"]) for d in deliveries} == {("delivered", 1)}


async def deliver_all(house):
    """Check that each booking and check-in reaches each endpoint once."""
    rows, receiver = await house.rows(), house.receiver
    for booked in house.booked:
        id_ = booked["serviceReservationId"]
        events = ["reservation.created"]
        if rows[id_]["checkedInAt"]:
            events.append("reservation.checked_in")
        for event in events:
            await receiver.wait_for(event, id_, len(ENDPOINTS), seconds=60)
            came = sorted(one.address for one in receiver.found(event, id_))
            assert came == sorted(ENDPOINTS), f"{event}: {came}"


async def test_no_restart_lets_things_expire_by_a_clock_of_next_year_but_a_persons_word(tmp_path):
    founded, time = found_box(tmp_path), OwnTime(tmp_path)
    asked = ask_for_tomorrow(founded)
    at_once = {"VENUEBOX_WEBHOOKS_CLOCK_GRACE_MINUTES": "0"}  # as after ten minutes
    with time.box(founded, tmp_path, at_once) as box:
        async with calling(box, founded, "live") as (partner, door):
            house = House(partner, door, None)
            await house.look_around()
            await house.book()
            evening = house.evening
            assert box.stop() < 10
            time.set("+1y")
            box.start()
            await house.look_around()
            assert house.evening > evening  # the clock is trusted, so new rows have that year
            await house.book()
            for _ in range(2):
                assert box.stop() < 10
                box.start()
            assert box.stop() < 10  # jobs that began at the start are done
            found = read_rows(founded.data / "live.db").reservations
            assert found[asked]["status"] == "requested"
            assert found[house.booked[0]["serviceReservationId"]]["status"] == "confirmed"

            box.start()
            confirm(box, founded, time)

            async with asyncio.timeout(60):
                while True:
                    rows = await house.rows()
                    booked = rows[house.booked[0]["serviceReservationId"]]["status"]
                    if (rows[asked]["status"], booked) == ("declined", "completed"):
                        break
                    await asyncio.sleep(0.1)


def confirm(box, founded, time):
    """Confirm the date on this machine by the command."""
    environ = clean_environ(box.settings)
    day = subprocess.run(
        ["date", "+%F"], env={**environ, "TZ": ZONE}, capture_output=True, text=True, check=True
    )
    words = (PROGRAM, "clock", "confirm", day.stdout.strip(), "--data", str(founded.data))
    done = subprocess.run(
        [*time.wrapper, *words], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
