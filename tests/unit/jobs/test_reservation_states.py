from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.clock import format_instant, newest_zone_database, parse_instant
from appliance.jobs import reservation_states as chores
from appliance.jobs.reservation_states import find_next_due
from appliance.reservations.change import cancel
from appliance.reservations.rows import update_reservation
from appliance.venue.model import Venue, evening_end
from tests.builders import TONIGHT, table_id
from tests.unit.jobs.keeping import END_OF_TONIGHT, World
from tests.unit.rows import events, history

CASABLANCA = newest_zone_database().zone("Africa/Casablanca")
VENUE = Venue("v", "Riad", "riad", "active", "free", auto_confirm=True, request_expiry_hours=24,
              currency="MAD", time_zone="Africa/Casablanca", evening_ends_at="06:00",
              policies=None)  # fmt: skip


@pytest.fixture
async def world(box, clock):
    made = World(box.live, clock)
    yield made
    await made.scheduler.close()


async def test_a_confirmed_reservation_is_completed_when_its_evening_ends_and_no_event_tells(
    world, box
):
    id_ = await world.enter()
    await world.start()

    await world.wait_for_the_timer()

    assert format_instant(world.clock.now()) == END_OF_TONIGHT
    assert (await world.get(id_)).status == "completed"
    assert history(box) == [("created", "staff:1"), ("completed", "box")]
    assert events(box) == []


async def test_an_evening_to_come_and_a_cancelled_guest_are_left_alone(world):
    await world.enter()
    tomorrow = await world.enter(date=date.fromisoformat(TONIGHT) + timedelta(days=1))
    gone = await world.enter(table_id=table_id("T2"))
    await world.database.write(cancel, gone, actor="staff:1")
    await world.start()

    await world.wait_for_the_timer()

    assert (await world.get(tomorrow)).status == "confirmed"
    assert (await world.get(gone)).status == "cancelled"
    assert world.timer.seconds == 24 * 3600


async def test_an_unanswered_request_is_declined_with_its_event_and_frees_the_table(world, box):
    id_ = await world.request(date=date(2026, 11, 28))
    await world.start()
    assert world.timer.seconds == 24 * 3600

    await world.wait_for_the_timer()

    assert (await world.get(id_)).status == "declined"
    assert history(box) == [("created", "guest"), ("declined", "box")]
    assert events(box) == ["reservation.declined"]
    await world.enter(date=date(2026, 11, 28))


async def test_a_request_whose_party_the_door_let_in_is_accepted_and_keeps_its_table(world, box):
    id_ = await world.request(date=date.fromisoformat(TONIGHT))
    await world.database.write(update_reservation, id_, arrived=2)
    await world.start()

    await world.wait_for_the_timer()

    assert (await world.get(id_)).status == "completed"
    assert [what for what, _ in history(box)] == ["created", "accepted", "completed"]
    assert events(box) == ["reservation.confirmed"]


async def test_access_codes_are_freed_30_days_after_the_evening_and_the_replay_keeps_its_own(world):
    id_ = await world.enter()
    code = (await world.get(id_)).access_code
    await world.start()

    await world.pass_until("2026-12-22T05:59:59Z")
    assert (await world.get(id_)).access_code == code

    await world.pass_until("2026-12-22T06:00:00Z")
    freed = await world.get(id_)
    assert freed.access_code is None
    assert freed.issued_code == code
    assert world.timer.seconds is None


async def test_a_box_that_was_off_for_months_catches_up_at_its_start(world):
    completed = await world.enter()
    declined = await world.request(date=date(2026, 11, 28))
    world.clock.set("2027-03-01T12:00:00Z")

    await world.start()

    assert (await world.get(completed)).status == "completed"
    assert (await world.get(declined)).status == "declined"
    assert (await world.get(completed)).access_code is None
    assert world.timer.seconds is None


async def test_more_than_a_batch_is_done_in_one_go(world, monkeypatch):
    monkeypatch.setattr("appliance.jobs.reservation_states.BATCH", 3)
    first = date.fromisoformat(TONIGHT)
    ids = [await world.enter(date=first + timedelta(days=n)) for n in range(7)]
    world.clock.set("2026-12-10T12:00:00Z")

    await world.start()

    assert {(await world.get(id_)).status for id_ in ids} == {"completed"}
    assert await world.database.read(find_next_due) == parse_instant("2026-12-22T06:00:00Z")


async def test_a_change_of_the_venues_clock_between_due_and_done_does_not_spin(world):
    """In the hour that comes twice, the evening is over by one reading and not by the other."""
    await world.database.write(lambda tx: tx.execute("UPDATE venue SET evening_ends_at = '01:30'"))
    world.clock.set("2026-09-18T12:00:00Z")
    id_ = await world.enter(date=date(2026, 9, 19))
    await world.start()

    await world.pass_until("2026-09-20T12:00:00Z")

    assert (await world.get(id_)).status == "completed"
    assert world.timer.set_times < 5


@settings(max_examples=300, deadline=None)
@given(
    milliseconds=st.integers(
        parse_instant("2018-01-01T00:00:00Z"), parse_instant("2040-01-01T00:00:00Z")
    ),
    ends=st.sampled_from(["00:00", "01:30", "02:00", "02:59", "03:00", "06:00", "12:00"]),
)
def test_what_is_due_by_one_reckoning_is_done_by_the_other(milliseconds, ends):
    venue = replace(VENUE, evening_ends_at=ends)

    last = chores.last_ended_evening(milliseconds, venue, CASABLANCA)

    assert evening_end(last, CASABLANCA, ends) <= milliseconds
    assert evening_end(last + timedelta(days=1), CASABLANCA, ends) > milliseconds
