"""Reservations from the venue's own page and from staff (interface, section 3)."""

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
async def test_a_guests_booking_begins_as_the_house_has_decided(
    box: Box, mode: str, auto_confirm: bool, status: str
):
    await set_house(box, mode, auto_confirm=auto_confirm)

    found = await box.live.database.write(enter_for_guest, a_booking())

    assert (found.status, found.source) == (status, "platform")
    assert events(box) == []


async def test_a_request_expires_after_the_hours_of_the_house_and_nothing_else_does(box: Box):
    await set_house(box, "free", auto_confirm=False, hours=3)
    request = await box.live.database.write(enter_for_guest, a_booking())
    await set_house(box, "free", auto_confirm=True, hours=3)
    confirmed = await box.live.database.write(enter_for_guest, a_booking(slot="22:00"))

    assert request.expires_at == request.created_at + 3 * 3_600_000
    assert confirmed.expires_at is None


async def test_a_request_expires_with_its_evening_at_the_latest(box: Box):
    await set_house(box, "free", auto_confirm=False, hours=8760)

    request = await box.live.database.write(enter_for_guest, a_booking())

    end = datetime.combine(date.fromisoformat(TONIGHT) + timedelta(days=1), time(6), UTC)
    assert request.expires_at == end.timestamp() * 1000


@pytest.mark.parametrize("mode", ["free", "prepaid"])
async def test_what_staff_write_down_is_confirmed_at_once(box: Box, mode: str):
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


async def test_a_form_whose_reservation_was_cancelled_does_not_bring_that_back(box):
    made = await box.live.database.write(book, a_wish())
    await box.live.database.write(update_reservation, made.id, status="cancelled")

    with pytest.raises(FormUsed):
        await box.live.database.write(book, a_wish())


async def test_the_house_fills_its_tables_and_then_refuses(box):
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
async def test_a_slot_is_booked_until_it_begins_and_the_evening_until_its_last(
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
