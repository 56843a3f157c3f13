"""Reminders are sent once, some hours before, and only to guests who agreed to emails."""

from datetime import date

import pytest

from appliance.jobs.reservation_states import stop_reminders
from appliance.reservations.change import cancel
from tests.conftest import set_rules
from tests.unit.jobs.keeping import World

NEXT_SATURDAY = date(2026, 11, 28)
EXPECTED = "2026-11-28T19:30:00Z"


class Guests(World):
    async def book(self, **changes):
        values = {"date": NEXT_SATURDAY, "customer_email": "salma@guest.example"} | changes
        return await self.enter(**values)

    def reminders(self):
        return self.database.peek(
            lambda reader: [
                row[0]
                for row in reader.rows(
                    "SELECT reservation_id FROM email WHERE kind = 'reminder' ORDER BY id"
                )
            ]
        )


@pytest.fixture
async def world(box, clock):
    made = Guests(box.live, clock)
    yield made
    await made.scheduler.close()


async def test_a_guest_is_reminded_once_one_day_before(world):
    id_ = await world.book()
    await world.start()

    await world.pass_until(EXPECTED)

    assert world.reminders() == [id_]


@pytest.mark.parametrize(("slot", "hour"), [("22:00", 22), ("19:30", 19), (None, 19)])
async def test_reminder_hours_count_from_the_slot_or_from_the_first_slot_of_the_evening(
    world, slot, hour
):
    id_ = await world.book(slot=slot)
    await world.start()

    await world.pass_until(f"2026-11-27T{hour}:00:00Z")
    assert world.reminders() == ([id_] if hour == 22 else [])
    await world.pass_until(f"2026-11-27T{hour}:30:00Z")

    assert world.reminders() == [id_]


async def test_a_guest_who_booked_within_the_reminder_hours_is_not_reminded(world, clock):
    clock.set("2026-11-28T09:00:00Z")
    await world.book()

    await world.start()
    await world.pass_until(EXPECTED)

    assert world.reminders() == []


async def test_a_box_that_was_off_sends_late_reminders_only_until_the_guests_are_due(world, clock):
    await world.book()
    late = await world.book(slot="22:00")
    clock.set("2026-11-28T20:00:00Z")

    await world.start()

    assert world.reminders() == [late]


async def test_cancelled_arrived_and_unreachable_guests_are_not_reminded(world):
    gone = await world.book()
    await world.database.write(cancel, gone, actor="staff:1")
    await world.book(customer_email=None)
    arrived = await world.book(slot="22:00")
    await world.database.write(
        lambda tx: tx.execute(
            "UPDATE reservation SET checked_in_at = 1 WHERE id = :id", {"id": arrived}
        )
    )

    await world.start()
    await world.pass_until(EXPECTED)

    assert world.reminders() == []


@pytest.mark.parametrize(("outcome", "reminded"), [("skipped", False), ("sent", True)])
async def test_guests_whose_emails_the_partner_sends_are_not_reminded(world, outcome, reminded):
    id_ = await world.book()

    def book_by_partner(tx):
        tx.execute("UPDATE reservation SET source = 'partner' WHERE id = :id", {"id": id_})
        tx.execute("UPDATE booking_request SET email_outcome = :outcome", {"outcome": outcome})

    await world.database.write(book_by_partner)

    await world.start()
    await world.pass_until(EXPECTED)

    assert world.reminders() == ([id_] if reminded else [])


async def test_a_guest_who_unsubscribed_gets_no_reminder_for_any_reservation(world):
    id_ = await world.book()
    await world.book(date=date(2026, 12, 5), customer_email="Salma@guest.example")
    other = await world.book(slot="22:00", customer_email="omar@guest.example")

    await world.database.write(stop_reminders, id_)
    await world.start()
    await world.pass_until("2026-12-05T19:00:00Z")

    assert world.reminders() == [other]


async def test_nobody_is_reminded_if_the_setting_is_0_hours(box, clock):
    await set_rules(box.live, reminder_hours=0)
    world = Guests(box.live, clock)
    await world.book()
    await world.start()

    await world.pass_until("2026-12-01T00:00:00Z")
    await world.scheduler.close()

    assert world.reminders() == []
