"""The changes of state of a request, an unpaid and a confirmed reservation."""

import pytest

from appliance.box import Box
from appliance.core.errors import NotFound, UnusualAmount, ValidationError, WrongState
from appliance.privacy import erase_texts_of
from appliance.reservations.change import accept, cancel, decline
from appliance.reservations.create import enter_by_staff, enter_for_guest
from appliance.reservations.model import STATUSES
from appliance.reservations.payments import AMOUNT_MAX, record_payment, void_payment
from appliance.reservations.rows import (
    get_reservation,
    list_history,
    list_payments,
    sum_payments,
    update_reservation,
)
from appliance.staff.audit_log import list_audit_entries
from tests.builders import a_booking, table_id
from tests.unit.rows import events, execute, history, read

NAME = "payment_voided"
STAFF = {"actor": "staff:x"}


async def a_request(box: Box) -> str:
    await execute(box, "UPDATE venue SET auto_confirm = 0")
    return (await box.live.database.write(enter_for_guest, a_booking())).id


async def an_unpaid_booking(box: Box) -> str:
    await execute(box, "UPDATE venue SET reservation_mode = 'prepaid'")
    return (await box.live.database.write(enter_for_guest, a_booking())).id


async def a_reservation(box: Box) -> str:
    return (await box.live.database.write(enter_by_staff, a_booking(), **STAFF)).id


@pytest.mark.parametrize(
    ("answer", "status", "what"),
    [
        (accept, "confirmed", "accepted"),
        (decline, "declined", "declined"),
        (cancel, "cancelled", "cancelled"),
    ],
)
async def test_answering_or_cancelling_a_request_is_announced_once(box, answer, status, what):
    id_ = await a_request(box)

    await box.live.database.write(answer, id_, **STAFF)

    found = await box.live.database.read(get_reservation, id_)
    assert (found.status, found.holds) == (status, status == "confirmed")
    assert events(box) == [f"reservation.{status}"]
    assert history(box)[1:] == [(what, "staff:x")]
    if status != "confirmed":
        await a_reservation(box)  # the table is free again


@pytest.mark.parametrize("answer", [accept, decline])
@pytest.mark.parametrize("status", [name for name in STATUSES if name != "requested"])
async def test_only_a_pending_request_can_be_accepted_or_declined(box: Box, answer, status: str):
    id_ = await a_request(box)
    await box.live.database.write(update_reservation, id_, status=status)

    with pytest.raises(WrongState, match=status):
        await box.live.database.write(answer, id_, **STAFF)
    with pytest.raises(NotFound):
        await box.live.database.write(answer, "nobody", **STAFF)

    assert (await box.live.database.read(get_reservation, id_)).status == status
    assert (events(box), history(box)[1:]) == ([], [])


@pytest.mark.parametrize("status", ["requested", "confirmed", "completed", "pending", "partial"])
async def test_every_reservation_that_holds_a_table_can_be_cancelled_and_is_announced_once(
    box, status: str
):
    id_ = await a_reservation(box)
    await box.live.database.write(update_reservation, id_, status=status, checked_in_at=5)

    done = await box.live.database.write(cancel, id_, actor="guest")
    box.clock.machine.advance(3600)
    again = await box.live.database.write(cancel, id_, **STAFF)

    assert (done.already, done.reservation.status) == (False, "cancelled")
    assert done.reservation.cancelled_at == box.clock.now() - 3_600_000
    assert done.reservation.checked_in_at == 5
    assert again.already
    assert again.reservation == done.reservation
    assert events(box) == ["reservation.cancelled"]
    await a_reservation(box)  # the table is free again


async def test_a_declined_request_cannot_be_cancelled(box: Box):
    id_ = await a_reservation(box)
    await box.live.database.write(update_reservation, id_, status="declined")

    with pytest.raises(WrongState, match="declined"):
        await box.live.database.write(cancel, id_, **STAFF)

    assert events(box) == []


async def pay(box: Box, id_: str, amount: int = 200, *, complete: bool = False, sure: bool = False):
    return await box.live.database.write(
        record_payment, id_, amount=amount, method="cash", complete=complete, sure=sure, **STAFF
    )


def payments(box: Box):
    return read(box, "SELECT amount, method, staff_id FROM payment ORDER BY id")


@pytest.mark.parametrize("status", [n for n in STATUSES if n not in {"pending", "partial"}])
async def test_a_payment_for_a_closed_reservation_is_refused(box: Box, status: str):
    id_ = await an_unpaid_booking(box)
    await box.live.database.write(update_reservation, id_, status=status)

    with pytest.raises(WrongState, match=status):
        await pay(box, id_, complete=True)

    assert (payments(box), events(box)) == ([], [])


@pytest.mark.parametrize("amount", [0, -1, AMOUNT_MAX + 1])
async def test_an_impossible_amount_is_refused_and_stores_nothing(box: Box, amount: int):
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


async def test_a_voided_payment_stays_listed_and_the_corrected_payment_confirms_again(box: Box):
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
async def test_a_reservation_with_one_of_two_payments_voided_is_partly_paid(box: Box, voided, kept):
    id_ = await an_unpaid_booking(box)
    await pay(box, id_, 200)
    await pay(box, id_, 300, complete=True)

    assert (await void(box, id_, voided)).status == "partial"
    assert (await void(box, id_, kept)).status == "pending"
    assert events(box) == ["reservation.confirmed"]  # a smaller change has no event


@pytest.mark.parametrize("status", ["cancelled", "declined", "completed"])
async def test_voiding_a_payment_does_not_reopen_a_closed_reservation(box: Box, status: str):
    id_ = await an_unpaid_booking(box)
    await pay(box, id_, complete=True)
    await box.live.database.write(update_reservation, id_, status=status)

    assert (await void(box, id_, 200)).status == status


async def test_a_voided_payment_names_its_author_and_loses_its_reason_at_erasure(box: Box):
    id_ = await an_unpaid_booking(box)
    await pay(box, id_)
    await void(box, id_, 200)

    def noted(reader):
        return [(h.actor, h.detail) for h in list_history(reader, id_) if h.what == NAME]

    def audit(reader):
        entries = list_audit_entries(reader, 9)
        return [(e.actor, e.detail) for e in entries if e.what == NAME]

    look = box.live.database.peek
    assert look(noted) == [("staff:x", {"amount": 200, "reason": "faute de frappe"})]
    assert look(audit) == [("staff:x", {"amount": "200 MAD", "reservation": id_})]
    await box.live.database.write(erase_texts_of, id_)
    assert look(noted) == [("staff:x", {"amount": 200})]


async def test_only_a_valid_payment_of_the_same_reservation_can_be_voided(box: Box):
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
async def test_an_unusually_high_amount_is_accepted_only_with_confirmation(box: Box, minimum, most):
    id_ = await an_unpaid_booking(box)
    await execute(box, "UPDATE venue_table SET minimum_spend = :minimum", minimum=minimum)

    with pytest.raises(UnusualAmount):
        await pay(box, id_, most + 1)

    assert payments(box) == []
    await pay(box, id_, most)
    await pay(box, id_, most + 1, sure=True)
    assert sorted(amount for amount, *_ in payments(box)) == [most, most + 1]
