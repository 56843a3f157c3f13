"""What changes a reservation writes to its guest, in the transaction of the change."""

import pytest

from appliance.actions.answer_request import accept, decline
from appliance.actions.cancel import cancel
from appliance.actions.enter import enter_by_staff, enter_for_guest
from appliance.actions.queue_letter import write_to_guest
from appliance.actions.record_payment import record_payment
from tests.builders import a_booking

EMAIL = "salma@guest.example"


@pytest.fixture
def letters(box):
    def kinds():
        return box.live.database.peek(
            lambda reader: [
                tuple(row)
                for row in reader.rows("SELECT kind, recipient, language FROM letter ORDER BY id")
            ]
        )

    return kinds


async def a_request(box, **changes):
    await box.live.database.write(lambda tx: tx.execute("UPDATE venue SET auto_confirm = 0"))
    booking = a_booking(customer_email=EMAIL, language="ar", **changes)
    return (await box.live.database.write(enter_for_guest, booking)).id


@pytest.mark.parametrize(("answer", "kind"), [(accept, "accepted"), (decline, "declined")])
async def test_the_answer_to_a_request_is_told_in_the_guests_language(box, letters, answer, kind):
    id_ = await a_request(box)

    await box.live.database.write(answer, id_, actor="staff:1")

    assert letters() == [(kind, EMAIL, "ar")]


@pytest.mark.parametrize(("complete", "kind"), [(True, "confirmation"), (False, "payment_due")])
async def test_a_payment_confirms_or_leaves_something_due(box, letters, complete, kind):
    write = box.live.database.write
    await write(lambda tx: tx.execute("UPDATE venue SET reservation_mode = 'prepaid'"))
    id_ = (await write(enter_for_guest, a_booking(customer_email=EMAIL))).id

    await write(record_payment, id_, amount=200, method="cash", complete=complete, actor="staff:1")

    assert letters() == [(kind, EMAIL, "fr")]


async def test_a_cancellation_is_told_to_whom_the_box_has_written_and_to_nobody_else(box, letters):
    write = box.live.database.write
    silent = (await write(enter_by_staff, a_booking(customer_email=EMAIL), actor="s")).id
    await write(cancel, silent, actor="staff:1")
    assert letters() == []

    told = (await write(enter_by_staff, a_booking(customer_email=EMAIL), actor="s")).id
    await write(write_to_guest, told, "confirmation")
    await write(cancel, told, actor="staff:1")
    await write(cancel, told, actor="staff:1")

    assert sorted(kind for kind, *_ in letters()) == ["cancelled", "confirmation"]


async def test_a_partner_that_writes_itself_is_left_to_it(box, letters):
    write = box.live.database.write
    id_ = await a_request(box)
    sql = "UPDATE reservation SET source = 'partner', email_outcome = 'skipped' WHERE id = :id"
    await write(lambda tx: tx.execute(sql, {"id": id_}))

    await write(accept, id_, actor="staff:1")
    await write(cancel, id_, actor="staff:1")

    assert letters() == []


async def test_without_an_address_nothing_is_written(box, letters):
    await box.live.database.write(lambda tx: tx.execute("UPDATE venue SET auto_confirm = 0"))
    id_ = (await box.live.database.write(enter_for_guest, a_booking())).id

    await box.live.database.write(accept, id_, actor="staff:1")

    assert letters() == []


async def test_the_same_news_twice_at_once_is_one_letter(box, letters):
    id_ = await a_request(box)

    def twice(tx):
        accept(tx, id_, actor="staff:1")
        write_to_guest(tx, id_, "accepted")

    await box.live.database.write(twice)

    assert [kind for kind, *_ in letters()] == ["accepted"]


async def test_letters_of_the_test_environment_are_kept(box):
    booking = a_booking(customer_email=EMAIL)
    id_ = (await box.test.database.write(enter_by_staff, booking, actor="s")).id

    await box.test.database.write(write_to_guest, id_, "reminder")

    state = box.test.database.peek(lambda reader: reader.value("SELECT state FROM letter"))
    assert state == "kept"
