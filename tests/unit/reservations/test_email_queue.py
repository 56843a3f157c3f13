"""The emails that changes queue in their own transactions, and the states of these emails."""

import pytest

from appliance.email.worker import record_email_attempt
from appliance.reservations.change import accept, cancel
from appliance.reservations.create import enter_by_staff, enter_for_guest
from appliance.reservations.email_queue import (
    EmailQueued,
    Outcome,
    email_guest,
    find_due_email,
    find_email,
    list_waiting_emails,
    next_email_due_at,
    queue_email,
)
from appliance.reservations.payments import record_payment
from tests.builders import a_booking
from tests.unit.rows import execute, read

EMAIL = "salma@guest.example"


async def an_email(environment, language="fr", **options):
    write = environment.database.write
    reservation = await write(enter_by_staff, a_booking(), actor="staff:1")
    return await write(queue_email, reservation.id, "confirmation", EMAIL, language, **options)


@pytest.fixture
async def email_id(box):
    return await an_email(box.live, keep=False)


@pytest.mark.parametrize("keep", [False, True])
async def test_a_queued_email_is_due_now_and_one_of_the_test_environment_never(box, keep):
    told, database = [], box.live.database
    database.on_commit(told.extend)

    email_id = await an_email(box.live, None if keep else "ar", keep=keep)

    letter = database.peek(find_email, email_id)
    assert (letter.state, letter.language) == (("kept", "fr") if keep else ("waiting", "ar"))
    assert letter.recipient == EMAIL
    assert letter.due_at == letter.created_at == box.clock.now()
    assert (EmailQueued(email_id) in told) is not keep
    assert len(database.peek(list_waiting_emails)) == (0 if keep else 1)


@pytest.mark.parametrize("second", ["accepted", "refused", "deferred", "unreachable"])
@pytest.mark.parametrize(("first", "state"), [("accepted", "sent"), ("refused", "failed")])
async def test_an_email_that_was_sent_or_failed_never_changes_state(
    box, email_id, first, state, second
):
    database = box.live.database
    assert await database.write(record_email_attempt, email_id, Outcome(first, "why")) is None
    before = database.peek(find_email, email_id)

    assert await database.write(record_email_attempt, email_id, Outcome(second, "again")) is None

    assert before.state == state
    assert database.peek(find_email, email_id) == before


async def test_setting_the_clock_back_does_not_delay_an_email(box, email_id):
    database = box.live.database
    for _ in range(2):
        await database.write(record_email_attempt, email_id, Outcome("deferred", "451"))

    assert database.peek(next_email_due_at) == box.clock.now() + 300_000
    assert database.peek(find_due_email) is None
    box.clock.machine.set("2026-11-01T12:00:00Z")
    assert database.peek(find_due_email) == email_id


def letters(box):
    return read(box, "SELECT kind, recipient, language FROM email ORDER BY id")


async def a_request(box):
    await execute(box, "UPDATE venue SET auto_confirm = 0")
    booking = a_booking(customer_email=EMAIL, language="ar")
    return (await box.live.database.write(enter_for_guest, booking)).id


@pytest.mark.parametrize(("complete", "kind"), [(True, "confirmation"), (False, "payment_due")])
async def test_a_payment_sends_a_confirmation_or_a_note_of_the_balance_due(box, complete, kind):
    write = box.live.database.write
    await execute(box, "UPDATE venue SET reservation_mode = 'prepaid'")
    id_ = (await write(enter_for_guest, a_booking(customer_email=EMAIL))).id

    await write(record_payment, id_, amount=200, method="cash", complete=complete, actor="staff:1")

    assert letters(box) == [(kind, EMAIL, "fr")]


async def test_a_cancellation_is_emailed_only_to_guests_whom_the_box_emailed_before(box):
    write = box.live.database.write
    silent = (await write(enter_by_staff, a_booking(customer_email=EMAIL), actor="s")).id
    await write(cancel, silent, actor="staff:1")
    assert letters(box) == []

    told = (await write(enter_by_staff, a_booking(customer_email=EMAIL), actor="s")).id
    await write(email_guest, told, "confirmation")
    await write(cancel, told, actor="staff:1")
    await write(cancel, told, actor="staff:1")

    assert sorted(kind for kind, *_ in letters(box)) == ["cancelled", "confirmation"]


async def test_guests_of_a_partner_that_sends_its_own_emails_get_none(box):
    write = box.live.database.write
    id_ = await a_request(box)
    await execute(box, "UPDATE reservation SET source = 'partner' WHERE id = :id", id=id_)
    await execute(box, "UPDATE booking_request SET email_outcome = 'skipped'")

    await write(accept, id_, actor="staff:1")
    await write(cancel, id_, actor="staff:1")

    assert letters(box) == []


async def test_two_simultaneous_equal_notifications_become_one_email(box):
    id_ = await a_request(box)

    def twice(tx):
        accept(tx, id_, actor="staff:1")
        email_guest(tx, id_, "accepted")

    await box.live.database.write(twice)

    assert [kind for kind, *_ in letters(box)] == ["accepted"]
