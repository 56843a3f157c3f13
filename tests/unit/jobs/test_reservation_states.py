import asyncio
from datetime import date, timedelta

import pytest

from appliance.clock import format_instant
from appliance.jobs.reservation_states import free_unpaid
from appliance.reservations.change import cancel, change_reservation
from appliance.reservations.create import enter_for_guest
from appliance.reservations.payments import record_payment, void_payment
from appliance.reservations.rows import list_payments, update_reservation
from tests.builders import TONIGHT, a_booking, table_id
from tests.unit.jobs.keeping import END_OF_TONIGHT, World
from tests.unit.rows import events, history


@pytest.fixture
async def world(box, clock):
    made = World(box.live, clock)
    yield made
    await made.scheduler.close()


async def test_a_confirmed_reservation_is_completed_without_an_event_when_its_evening_ends(
    world, box
):
    id_ = await world.enter()
    await world.start()

    await world.wait_for_the_timer()

    assert format_instant(world.clock.now()) == END_OF_TONIGHT
    assert (await world.get(id_)).status == "completed"
    assert history(box) == [("created", "staff:1"), ("completed", "box")]
    assert events(box) == []


async def test_future_evenings_and_cancelled_reservations_are_not_completed(world):
    await world.enter()
    tomorrow = await world.enter(date=date.fromisoformat(TONIGHT) + timedelta(days=1))
    gone = await world.enter(table_id=table_id("T2"))
    await world.database.write(cancel, gone, actor="staff:1")
    await world.start()

    await world.wait_for_the_timer()

    assert (await world.get(tomorrow)).status == "confirmed"
    assert (await world.get(gone)).status == "cancelled"
    assert world.timer.seconds == 24 * 3600


async def test_an_expired_request_is_declined_with_an_event_and_its_table_becomes_free(world, box):
    id_ = await world.request(date=date(2026, 11, 28))
    await world.start()
    assert world.timer.seconds == 24 * 3600

    await world.wait_for_the_timer()

    assert (await world.get(id_)).status == "declined"
    assert history(box) == [("created", "guest"), ("declined", "box")]
    assert events(box) == ["reservation.declined"]
    await world.enter(date=date(2026, 11, 28))


async def test_a_request_whose_guests_were_let_in_is_accepted_and_keeps_its_table(world, box):
    id_ = await world.request(date=date.fromisoformat(TONIGHT))
    await world.database.write(update_reservation, id_, arrived=2)
    await world.start()

    await world.wait_for_the_timer()

    assert (await world.get(id_)).status == "completed"
    assert [what for what, _ in history(box)] == ["created", "accepted", "completed"]
    assert events(box) == ["reservation.confirmed"]


async def test_access_codes_are_reused_30_days_after_the_evening_but_replays_keep_theirs(world):
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


async def test_a_box_that_was_off_for_months_catches_up_when_it_starts(world):
    completed = await world.enter()
    declined = await world.request(date=date(2026, 11, 28))
    world.clock.set("2027-03-01T12:00:00Z")

    await world.start()

    assert (await world.get(completed)).status == "completed"
    assert (await world.get(declined)).status == "declined"
    assert (await world.get(completed)).access_code is None
    assert world.timer.seconds is None


PREPAID = "UPDATE venue SET reservation_mode = 'prepaid', payment_hours = 48, payment_frees = ?"
LETTERS = "SELECT kind FROM email ORDER BY rowid"


async def book_prepaid(world, *, frees, day=date(2026, 11, 28)):
    await world.database.write(lambda tx: tx.execute(PREPAID.replace("?", str(frees))))
    booking = a_booking(date=day, customer_email="salma@example.com")
    made = await world.database.write(enter_for_guest, booking, notify=True)
    await asyncio.sleep(0)
    return made.id


async def letters(world):
    return [kind for (kind,) in await world.database.read(lambda tx: list(tx.rows(LETTERS)))]


async def test_a_move_to_a_later_evening_extends_a_deadline_that_the_old_evening_cut_short(world):
    await world.start()
    id_ = await book_prepaid(world, frees=1, day=date(2026, 11, 21))
    await world.database.write(
        change_reservation, id_, {"date": date(2026, 11, 28)}, actor="staff:1"
    )

    await world.pass_until("2026-11-23T18:59:59Z")
    assert (await world.get(id_)).status == "pending"
    await world.pass_until("2026-11-23T19:00:00Z")
    assert (await world.get(id_)).status == "cancelled"


@pytest.mark.parametrize(("frees", "status"), [(1, "cancelled"), (0, "pending")])
async def test_an_unpaid_prepaid_reservation_is_reminded_once_and_cancelled_if_so_configured(
    world, frees, status
):
    await world.start()
    id_ = await book_prepaid(world, frees=frees)

    await world.pass_until("2026-11-22T18:59:59Z")
    assert await letters(world) == ["payment_due"]
    await world.pass_until("2026-11-23T18:59:59Z")
    assert await letters(world) == ["payment_due", "payment_reminder"]
    assert (await world.get(id_)).status == "pending"
    await world.pass_until("2026-11-24T00:00:00Z")

    assert (await world.get(id_)).status == status
    assert await letters(world) == ["payment_due", "payment_reminder", "cancelled"][: 2 + frees]


async def test_a_partial_payment_in_time_keeps_the_table_even_if_it_is_voided_later(world):
    await world.start()
    id_ = await book_prepaid(world, frees=1)
    await world.database.write(
        record_payment, id_, amount=100, method="cash", complete=False, actor="staff:1"
    )
    [paid] = await world.database.read(list_payments, id_)
    await world.pass_until("2026-11-25T00:00:00Z")
    await world.database.write(void_payment, id_, paid.id, reason="typed twice", actor="staff:1")
    await world.pass_until("2026-11-26T00:00:00Z")

    assert (await world.get(id_)).status == "pending"
    assert "payment_reminder" not in await letters(world)


async def test_enabling_the_payment_rule_does_not_cancel_unpaid_reservations_of_past_evenings(
    world,
):
    await world.start()
    id_ = await book_prepaid(world, frees=0)
    await world.pass_until("2026-12-02T00:00:00Z")
    world.clock.set("2026-12-02T00:00:00Z")
    await world.database.write(lambda tx: tx.execute("UPDATE venue SET payment_frees = 1"))
    await world.scheduler.settle()

    assert await world.database.write(free_unpaid) == 0
    assert (await world.get(id_)).status == "pending"
