"""Corrections by staff after a reservation was granted, and phone numbers in any digits."""

from dataclasses import replace
from functools import partial

import pytest

from appliance.core.errors import (
    FewerThanArrived,
    GuestsOutOfRange,
    TableNotFound,
    TableTaken,
    WrongState,
)
from appliance.reservations.by_guest import Correction, correct
from appliance.reservations.change import (
    Amendment,
    amend_reservation,
    as_seen,
    cancel,
    change_reservation,
    mark_late,
    move_to_table,
)
from appliance.reservations.create import enter_by_staff
from appliance.reservations.request import read_contacts
from appliance.reservations.rows import get_reservation, update_reservation
from tests.builders import a_booking, table_id
from tests.unit.rows import history

BY = "staff:yasmine"
AS_BOOKED = Amendment(2, "Salma Idrissi", None, "+212 600 000 001", None)


@pytest.fixture
async def booked(box):
    return await box.live.database.write(enter_by_staff, a_booking(), actor=BY)


async def amend(box, booked, seen=None, **changes):
    wanted = replace(AS_BOOKED, **changes)
    return await box.live.database.write(
        as_seen, booked.id, seen or booked.version, amend_reservation, wanted, actor=BY
    )


def happened(box):
    return [what for what, _ in history(box)]


@pytest.mark.parametrize("guests", [0, 99])
async def test_a_party_cannot_grow_beyond_the_capacity_of_its_table(box, booked, guests):
    with pytest.raises(GuestsOutOfRange):
        await amend(box, booked, guests=guests)

    assert happened(box) == ["created"]


async def test_a_party_moved_to_a_small_table_with_confirmation_can_still_be_edited(box, booked):
    await box.live.database.write(
        lambda tx: tx.execute("UPDATE venue_table SET capacity_min = 3 WHERE number = 'T2'")
    )
    move = partial(box.live.database.write, move_to_table, booked.id, table_id("T2"), actor=BY)
    with pytest.raises(GuestsOutOfRange):
        await move()

    moved = await move(over_capacity=True)
    same = await amend(box, moved, guests=moved.guests, notes="Fenêtre")
    assert (same.table_id, same.notes) == (table_id("T2"), "Fenêtre")


async def test_a_party_cannot_shrink_below_the_guests_who_have_arrived(box, booked):
    await box.live.database.write(update_reservation, booked.id, arrived=2)
    with pytest.raises(FewerThanArrived):
        await amend(box, await box.live.database.read(get_reservation, booked.id), guests=1)


async def test_a_reservation_cannot_be_moved_onto_an_occupied_table(box, booked):
    other = await box.live.database.write(
        enter_by_staff, a_booking(table_id=table_id("T2"), slot=None), actor=BY
    )

    with pytest.raises(TableTaken):
        await box.live.database.write(move_to_table, booked.id, other.table_id, actor=BY)
    with pytest.raises(TableNotFound):
        await box.live.database.write(move_to_table, booked.id, "no table", actor=BY)


async def test_a_closed_reservation_cannot_be_amended(box, booked):
    gone = (await box.live.database.write(cancel, booked.id, actor=BY)).reservation

    with pytest.raises(WrongState):
        await amend(box, gone, guests=3)


async def test_marking_a_late_party_as_late_again_changes_nothing(box, clock, booked):
    late = await box.live.database.write(mark_late, booked.id, late=True, actor=BY)
    again = await box.live.database.write(mark_late, booked.id, late=True, actor=BY)
    on_time = await box.live.database.write(mark_late, booked.id, late=False, actor=BY)

    assert late.late_at == clock.now()
    assert again.version == late.version
    assert on_time.late_at is None
    assert happened(box) == ["created", "late", "not_late"]


@pytest.mark.parametrize(("slot", "is_still_late"), [("22:00", False), ("19:30", True)])
async def test_a_party_that_moves_to_another_time_is_no_longer_late(box, slot, is_still_late):
    write = box.live.database.write
    party = await write(enter_by_staff, a_booking(slot="19:30"), actor=BY)
    await write(mark_late, party.id, late=True, actor=BY)
    wanted = {"slot": slot, "table_ids": (table_id("T2"),)}

    moved = (await write(change_reservation, party.id, wanted, actor=BY)).reservation

    assert (moved.late_at is not None) == is_still_late


TYPED, STORED = "+٢١٢ ٦٠٠ ٠٠٠ ٠٠٩", "+212 600 000 009"


async def test_a_phone_number_is_stored_as_typed_and_in_e164_by_every_writer(box):
    write = box.live.database.write
    _, phone = read_contacts(None, TYPED)
    made = await write(enter_by_staff, a_booking(customer_phone=phone), actor="staff:x")
    amendment = Amendment(2, "Salma Idrissi", None, "06 00 00 00 08 / 05 24 00 00 00", None)
    amended = await write(amend_reservation, made.id, amendment, actor="staff:x")
    corrected = await write(correct, made.id, Correction(phone=phone))

    assert (made.customer_phone, made.phone_numbers) == (STORED, ["+212600000009"])
    assert amended.phone_numbers == ["+212600000008", "+212524000000"]
    assert (corrected.customer_phone, corrected.phone_numbers) == (STORED, ["+212600000009"])
    assert happened(box) == ["created", "amended", "amended"]
