"""Reservations from the venue's booking page and from staff (interface, section 3)."""

from datetime import UTC, date, datetime, time, timedelta

import pytest

from appliance.box import Box
from appliance.core.errors import FormUsed, InvalidSlot, TableTaken
from appliance.reservations.create import ANY_TABLE, book, enter_by_staff, enter_for_guest
from appliance.reservations.rows import update_reservation
from tests.builders import TONIGHT, a_booking, table_id
from tests.unit.rows import events, execute


async def set_house(box: Box, mode: str, *, auto_confirm: bool, hours: int = 24) -> None:
    sql = """UPDATE venue SET reservation_mode = :mode, auto_confirm = :auto,
                              request_expiry_hours = :hours"""
    await execute(box, sql, mode=mode, auto=int(auto_confirm), hours=hours)


@pytest.mark.parametrize(
    ("mode", "auto_confirm", "status"),
    [
        ("free", True, "confirmed"),
        ("free", False, "requested"),
        ("prepaid", True, "pending"),
        ("prepaid", False, "pending"),
    ],
)
async def test_a_guests_booking_starts_in_the_state_that_the_venue_configured(
    box: Box, mode: str, auto_confirm: bool, status: str
):
    await set_house(box, mode, auto_confirm=auto_confirm)

    found = await box.live.database.write(enter_for_guest, a_booking())

    assert (found.status, found.source) == (status, "platform")
    assert events(box) == []


async def test_a_request_expires_after_the_configured_hours_and_other_reservations_do_not(box: Box):
    await set_house(box, "free", auto_confirm=False, hours=3)
    request = await box.live.database.write(enter_for_guest, a_booking())
    await set_house(box, "free", auto_confirm=True, hours=3)
    confirmed = await box.live.database.write(enter_for_guest, a_booking(slot="22:00"))

    assert request.expires_at == request.created_at + 3 * 3_600_000
    assert confirmed.expires_at is None


async def test_a_request_expires_at_the_latest_when_its_evening_ends(box: Box):
    await set_house(box, "free", auto_confirm=False, hours=8760)

    request = await box.live.database.write(enter_for_guest, a_booking())

    end = datetime.combine(date.fromisoformat(TONIGHT) + timedelta(days=1), time(6), UTC)
    assert request.expires_at == end.timestamp() * 1000


@pytest.mark.parametrize("mode", ["free", "prepaid"])
async def test_a_reservation_entered_by_staff_is_confirmed_immediately(box: Box, mode: str):
    await set_house(box, mode, auto_confirm=False)

    found = await box.live.database.write(enter_by_staff, a_booking(), actor="staff:x")

    assert (found.status, found.source) == ("confirmed", "manual")
    assert events(box) == []


@pytest.fixture
def clock(clock):
    clock.set("2026-11-21T12:00:00Z")
    return clock


def a_wish(number: int = 1, **changes):
    return a_booking(idempotency_key=f"form-{number}", **changes)


async def test_submitting_the_form_of_a_cancelled_reservation_again_does_not_restore_it(box):
    made = await box.live.database.write(book, a_wish())
    await box.live.database.write(update_reservation, made.id, status="cancelled")

    with pytest.raises(FormUsed):
        await box.live.database.write(book, a_wish())


async def test_guests_can_book_every_table_and_then_get_a_refusal(box):
    wishes = [a_wish(number, table_id=ANY_TABLE) for number in range(6)]
    made = [await box.live.database.write(book, wish) for wish in wishes[:5]]

    with pytest.raises(TableTaken):
        await box.live.database.write(book, wishes[5])

    assert [one.table_id for one in made] == [table_id(f"T{n}") for n in range(1, 6)]


@pytest.mark.parametrize(
    ("now", "slot", "is_booked"),
    [
        ("2026-11-21T19:29:59Z", "19:30", True),
        ("2026-11-21T19:30:00Z", "19:30", False),
        ("2026-11-21T21:59:59Z", "22:00", True),
        ("2026-11-21T21:59:59Z", None, True),
        ("2026-11-21T22:00:00Z", None, False),
        ("2026-11-22T01:00:00Z", "22:00", False),
    ],
)
async def test_a_slot_can_be_booked_until_it_starts_and_the_evening_until_its_last_slot(
    box, clock, now, slot, is_booked
):
    clock.set(now)

    try:
        await box.live.database.write(book, a_wish(slot=slot))
    except InvalidSlot:
        booked = False
    else:
        booked = True

    assert booked is is_booked
