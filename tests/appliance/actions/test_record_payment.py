"""Payments that staff record and void: pending ⇄ partial ⇄ confirmed (decisions.md, States)."""

import pytest

from appliance.actions.cancel import cancel
from appliance.actions.enter import enter_for_guest
from appliance.actions.record_payment import AMOUNT_MAX, record_payment, void_payment
from appliance.box import Box
from appliance.errors import NotFound, ValidationError, WrongState
from appliance.house_errors import UnusualAmount
from appliance.model.reservation import STATUSES
from appliance.store.erasing import erase_history_of
from appliance.store.history import list_history, list_payments, sum_payments
from appliance.store.reservations import get_reservation, update_reservation
from appliance.store.security_log import list_security_entries
from tests.builders import a_booking, table_id

NAME = "payment_voided"


async def an_unpaid_booking(box: Box) -> str:
    await box.live.database.write(
        lambda tx: tx.execute("UPDATE venue SET reservation_mode = 'prepaid'")
    )
    return (await box.live.database.write(enter_for_guest, a_booking())).id


async def pay(box: Box, id_: str, amount: int = 200, *, complete: bool = False, sure: bool = False):
    return await box.live.database.write(
        record_payment, id_, amount=amount, method="cash", complete=complete, actor="staff:x",
        sure=sure,
    )  # fmt: skip


def events(box: Box) -> list[str]:
    sql = "SELECT type FROM event WHERE type <> 'reservation.created' ORDER BY seq"
    return box.live.database.peek(lambda reader: [type_ for (type_,) in reader.rows(sql)])


def payments(box: Box) -> list[tuple]:
    sql = "SELECT amount, method, staff_id FROM payment ORDER BY id"
    return box.live.database.peek(lambda reader: list(reader.rows(sql)))


@pytest.mark.proves("decision: What becomes of an unpaid booking?")
async def test_a_part_of_the_price_makes_it_partial_and_announces_nothing(box: Box):
    id_ = await an_unpaid_booking(box)

    found = await pay(box, id_)

    assert found.status == "partial"
    assert events(box) == []
    assert payments(box) == [(200, "cash", "x")]


@pytest.mark.proves("decision: What becomes of an unpaid booking?")
async def test_the_rest_of_the_price_confirms_and_announces_it_once(box: Box):
    id_ = await an_unpaid_booking(box)
    await pay(box, id_)
    await pay(box, id_, 100)

    found = await pay(box, id_, 300, complete=True)

    assert found.status == "confirmed"
    assert events(box) == ["reservation.confirmed"]
    assert sorted(amount for amount, _, _ in payments(box)) == [100, 200, 300]


@pytest.mark.proves("decision: When is reservation.confirmed sent?")
async def test_the_whole_price_at_once_confirms(box: Box):
    id_ = await an_unpaid_booking(box)

    assert (await pay(box, id_, 500, complete=True)).status == "confirmed"
    assert events(box) == ["reservation.confirmed"]


@pytest.mark.proves("decision: What becomes of an unpaid booking?")
@pytest.mark.parametrize("part_paid", [False, True])
async def test_what_is_not_paid_in_full_may_be_cancelled(box: Box, part_paid: bool):
    id_ = await an_unpaid_booking(box)
    if part_paid:
        await pay(box, id_)

    cancelled = await box.live.database.write(cancel, id_, actor="staff:x")

    assert cancelled.reservation.status == "cancelled"
    assert events(box) == ["reservation.cancelled"]


@pytest.mark.proves("decision: What becomes of an unpaid booking?")
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


async def void(box: Box, id_: str, amount: int):
    [payment] = [p for p in payments_of(box, id_) if p.amount == amount and p.voided_at is None]
    return await box.live.database.write(
        void_payment, id_, payment.id, reason="faute de frappe", actor="staff:x"
    )


def payments_of(box: Box, id_: str):
    return box.live.database.peek(lambda reader: list_payments(reader, id_))


async def test_a_voided_payment_stays_counts_no_more_and_the_right_one_confirms_again(box: Box):
    id_ = await an_unpaid_booking(box)
    await pay(box, id_, 5000, complete=True)

    fallen = await void(box, id_, 5000)
    again = await pay(box, id_, 500, complete=True)

    assert (fallen.status, fallen.holds, again.status) == ("pending", True, "confirmed")
    assert events(box) == ["reservation.confirmed", "reservation.confirmed"]
    assert [(p.amount, p.voided_at is None) for p in payments_of(box, id_)] in (
        [(5000, False), (500, True)], [(500, True), (5000, False)]
    )  # fmt: skip
    assert box.live.database.peek(lambda reader: sum_payments(reader, id_)) == 500


@pytest.mark.parametrize(("voided", "kept"), [(200, 300), (300, 200)])
async def test_beside_another_payment_a_voided_one_leaves_it_partial(box: Box, voided, kept):
    id_ = await an_unpaid_booking(box)
    await pay(box, id_, 200)
    await pay(box, id_, 300, complete=True)

    assert (await void(box, id_, voided)).status == "partial"
    assert (await void(box, id_, kept)).status == "pending"
    assert events(box) == ["reservation.confirmed"]  # no event says less than that


@pytest.mark.parametrize("status", ["cancelled", "declined", "completed"])
async def test_what_is_over_stays_over_when_its_payment_is_voided(box: Box, status: str):
    id_ = await an_unpaid_booking(box)
    await pay(box, id_, complete=True)
    await box.live.database.write(update_reservation, id_, status=status)

    assert (await void(box, id_, 200)).status == status


async def test_who_voided_it_and_why_is_written_and_the_reason_goes_with_the_guest(box: Box):
    id_ = await an_unpaid_booking(box)
    await pay(box, id_)
    await void(box, id_, 200)

    def history(reader):
        return [(h.actor, h.detail) for h in list_history(reader, id_) if h.what == NAME]

    def audit(reader):
        entries = list_security_entries(reader, 9)
        return [(e.actor, e.detail) for e in entries if e.what == NAME]

    read = box.live.database.peek
    assert read(history) == [("staff:x", {"amount": 200, "reason": "faute de frappe"})]
    assert read(audit) == [("staff:x", {"amount": "200 MAD", "reservation": id_})]
    await box.live.database.write(erase_history_of, id_)
    assert read(history) == [("staff:x", {"amount": 200})]


async def test_only_a_standing_payment_of_that_reservation_is_voided(box: Box):
    id_ = await an_unpaid_booking(box)
    await pay(box, id_)
    other = await box.live.database.write(enter_for_guest, a_booking(table_id=table_id("T3")))
    [payment] = payments_of(box, id_)
    await void(box, id_, 200)

    for reservation in (id_, other.id):
        with pytest.raises(NotFound):
            await box.live.database.write(
                void_payment, reservation, payment.id, reason="x", actor="staff:x"
            )


@pytest.mark.parametrize(("minimum", "most"), [(500, 5_000), (0, 20_000)])
async def test_an_amount_far_above_the_usual_is_taken_from_who_is_sure(box: Box, minimum, most):
    id_ = await an_unpaid_booking(box)
    sql = "UPDATE venue_table SET minimum_spend = :minimum"
    await box.live.database.write(lambda tx: tx.execute(sql, {"minimum": minimum}))

    with pytest.raises(UnusualAmount):
        await pay(box, id_, most + 1)

    assert payments(box) == []
    await pay(box, id_, most)
    await pay(box, id_, most + 1, sure=True)
    assert sorted(amount for amount, *_ in payments(box)) == [most, most + 1]
