"""What a box erases and sends if it starts with a wrong clock and without a time server."""

import asyncio
from datetime import date, timedelta

import pytest

from appliance.box import find_heartbeat
from appliance.clock import parse_instant
from appliance.reservations.create import enter_by_staff, enter_for_guest
from appliance.reservations.rows import get_reservation
from appliance.venue.model import get_venue, tonight
from appliance.webhooks.endpoints import register_endpoint
from tests.app.portal.people import a_person
from tests.builders import TONIGHT, a_body, a_booking, table_id
from tests.conftest import running_box, with_settings
from tests.waiting import until

EVENING = parse_instant("2026-11-21T19:00:00Z")
IN_TEN_YEARS, IN_1970 = "2036-11-21T19:00:00Z", "1970-01-01T00:00:20Z"
PAST, FUTURE = "past", "future"


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "allow_http": True})


@pytest.fixture
async def evening(tmp_path, clock, settings, receiver):
    """The directory of a box that was switched off during an evening, and the ids of its guests."""
    async with running_box(tmp_path, clock, settings) as running:
        write = running.live.database.write
        await write(register_endpoint, running.live.keyring, receiver.url, ("reservation.created",))
        confirmed = await write(enter_by_staff, a_booking(), actor="staff:1")
        await write(lambda tx: tx.execute("UPDATE venue SET auto_confirm = 0"))
        asked = await write(
            enter_for_guest,
            a_booking(date=date.fromisoformat(TONIGHT) + timedelta(days=1)),
        )
        await until(lambda: running.live.database.peek(find_heartbeat) == EVENING)
        await receiver.got(2)
    clock.synchronised = False
    return confirmed.id, asked.id


def names_and_states(running, ids):
    found = [running.live.database.peek(get_reservation, id_) for id_ in ids]
    return [(each.customer_name, each.status) for each in found]


async def test_while_the_clock_is_ten_years_ahead_nothing_expires_until_an_owner_confirms_it(
    evening, tmp_path, clock, settings, receiver, monkeypatch
):
    monkeypatch.setattr("appliance.scheduler._UNBELIEVED_SECONDS", 0.01)
    clock.set(IN_TEN_YEARS)
    kept = [("Salma Idrissi", "confirmed"), ("Salma Idrissi", "requested")]
    for _ in range(2):  # a restart does not correct the clock
        async with running_box(tmp_path, clock, settings) as running:
            body = a_body(date="2036-11-22", idempotencyKey=str(len(receiver.requests)),
                          tableId=table_id(f"T{len(receiver.requests)}"))  # fmt: skip
            assert (await running.call("POST", "/v1/reservations", json=body))[0] == 201
            await receiver.got(len(receiver.requests) + 1)
            await asyncio.sleep(0.1)
            assert names_and_states(running, evening) == kept

    async with running_box(tmp_path, clock, settings) as running:
        owner = await a_person(running)
        assert 'action="/portal/box/clock"' in (await owner.get("/portal/box"))[1]
        await owner.post("/portal/box/clock")
        gone = [(None, "completed"), (None, "declined")]
        await until(lambda: names_and_states(running, evening) == gone)


async def test_after_a_start_in_1970_the_evening_continues_and_its_emails_are_sent(
    evening, tmp_path, clock, settings, receiver
):
    clock.set(IN_1970)
    async with running_box(tmp_path, clock, settings) as running:
        clock.advance(60)
        assert running.box.clock.now() == EVENING + 60_000
        venue = running.live.database.peek(get_venue)
        zone = running.box.zones.zone(venue.time_zone)
        assert str(tonight(running.box.clock.now(), zone, venue.evening_ends_at)) == TONIGHT

        status, _, _ = await running.call(
            "POST", "/v1/reservations", json=a_body(tableId=table_id("T2"))
        )

        assert status == 201
        request = (await receiver.got(3))[2]
        assert request.headers["x-service-signature"].startswith("t=80,v1=")
