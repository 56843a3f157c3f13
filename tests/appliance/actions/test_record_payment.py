"""Payments that staff record: pending → partial → confirmed (decisions.md, States)."""

import pytest

from appliance.actions.cancel import cancel
from appliance.actions.enter import enter_for_guest
from appliance.actions.record_payment import AMOUNT_MAX, record_payment
from appliance.box import Box
from appliance.errors import ValidationError, WrongState
from appliance.model.reservation import STATUSES
from appliance.store.reservations import get_reservation, update_reservation
from tests.builders import a_booking


async def an_unpaid_booking(box: Box) -> str:
    await box.live.database.write(
        lambda tx: tx.execute("UPDATE venue SET reservation_mode = 'prepaid'")
    )
    return (await box.live.database.write(enter_for_guest, a_booking())).id


async def pay(box: Box, id_: str, amount: int = 200, *, complete: bool = False):
    return await box.live.database.write(
        record_payment, id_, amount=amount, method="cash", complete=complete, actor="staff:x"
    )


def events(box: Box) -> list[str]:
    sql = "SELECT type FROM event WHERE type <> 'reservation.created' ORDER BY seq"
    return box.live.database.peek(lambda reader: [type_ for (type_,) in reader.rows(sql)])


def payments(box: Box) -> list[tuple]:
    sql = "SELECT amount, method, staff_id FROM payment ORDER BY id"
    return box.live.database.peek(lambda reader: list(reader.rows(sql)))


async def test_a_part_of_the_price_makes_it_partial_and_announces_nothing(box: Box):
    id_ = await an_unpaid_booking(box)

    found = await pay(box, id_)

    assert found.status == "partial"
    assert events(box) == []
    assert payments(box) == [(200, "cash", "x")]


async def test_the_rest_of_the_price_confirms_and_announces_it_once(box: Box):
    id_ = await an_unpaid_booking(box)
    await pay(box, id_)
    await pay(box, id_, 100)

    found = await pay(box, id_, 300, complete=True)

    assert found.status == "confirmed"
    assert events(box) == ["reservation.confirmed"]
    assert sorted(amount for amount, _, _ in payments(box)) == [100, 200, 300]


async def test_the_whole_price_at_once_confirms(box: Box):
    id_ = await an_unpaid_booking(box)

    assert (await pay(box, id_, 500, complete=True)).status == "confirmed"
    assert events(box) == ["reservation.confirmed"]


@pytest.mark.parametrize("part_paid", [False, True])
async def test_what_is_not_paid_in_full_may_be_cancelled(box: Box, part_paid: bool):
    id_ = await an_unpaid_booking(box)
    if part_paid:
        await pay(box, id_)

    cancelled = await box.live.database.write(cancel, id_, actor="staff:x")

    assert cancelled.reservation.status == "cancelled"
    assert events(box) == ["reservation.cancelled"]


@pytest.mark.parametrize("status", [n for n in STATUSES if n not in {"pending", "partial"}])
async def test_no_payment_is_taken_in_any_other_state(box: Box, status: str):
    id_ = await an_unpaid_booking(box)
    await box.live.database.write(update_reservation, id_, status=status)

    with pytest.raises(WrongState, match=status):
        await pay(box, id_, complete=True)

    assert (payments(box), events(box)) == ([], [])


@pytest.mark.parametrize("amount", [0, -1, AMOUNT_MAX + 1])
async def test_an_amount_that_cannot_be_is_refused_and_leaves_no_trace(box: Box, amount: int):
    id_ = await an_unpaid_booking(box)

    with pytest.raises(ValidationError) as refused:
        await pay(box, id_, amount)

    assert refused.value.field == "amount"
    assert payments(box) == []
    assert (await box.live.database.read(get_reservation, id_)).status == "pending"
