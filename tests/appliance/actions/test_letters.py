import pytest

from appliance.actions.answer_request import accept, decline
from appliance.actions.cancel import cancel
from appliance.actions.enter import enter_by_staff, enter_for_guest
from appliance.actions.queue_letter import LetterQueued, queue_letter, write_to_guest
from appliance.actions.record_letter import record_letter
from appliance.actions.record_payment import record_payment
from appliance.model.letter import Outcome, remaining_delay
from appliance.store.letters import find_letter, get_letter, list_letters, list_waiting_letters
from appliance.store.reservations import insert_reservation
from tests.builders import TONIGHT, a_booking, table_id

GUEST = "salma@guest.example"


def book(tx):
    """Insert a confirmed reservation for tonight; its id."""
    reservation_id = tx.new_id()
    insert_reservation(
        tx,
        {"id": reservation_id, "status": "confirmed", "source": "partner",
         "table_id": table_id("T1"), "date": TONIGHT, "starts": 0, "ends": 2880, "guests": 2,
         "pass_id": tx.tokens.random_bytes(8), "link_expires_at": 0, "created_at": tx.now,
         "updated_at": tx.now},
    )  # fmt: skip
    return reservation_id


@pytest.fixture
async def letter_id(box):
    def queue(tx):
        return queue_letter(tx, book(tx), "confirmation", GUEST, "fr", keep=False)

    return await box.live.database.write(queue)


async def test_a_queued_letter_waits_from_now_and_is_told_after_the_commit(box):
    told = []
    box.live.database.on_commit(told.extend)

    def queue(tx):
        return queue_letter(tx, book(tx), "confirmation", GUEST, "ar", keep=False)

    letter_id = await box.live.database.write(queue)

    letter = box.live.database.peek(get_letter, letter_id)
    assert (letter.state, letter.recipient, letter.language) == ("waiting", GUEST, "ar")
    assert letter.due_at == letter.created_at == box.clock.now()
    assert LetterQueued(letter_id) in told


async def test_a_kept_letter_never_waits_and_is_told_to_nobody(box):
    told = []
    box.test.database.on_commit(told.extend)

    def queue(tx):
        return queue_letter(tx, book(tx), "confirmation", GUEST, None, keep=True)

    letter_id = await box.test.database.write(queue)

    assert box.test.database.peek(get_letter, letter_id).state == "kept"
    assert box.test.database.peek(get_letter, letter_id).language == "fr"
    assert box.test.database.peek(list_waiting_letters) == []
    assert [letter.id for letter in box.test.database.peek(list_letters)] == [letter_id]
    assert not any(isinstance(notice, LetterQueued) for notice in told)


@pytest.mark.parametrize("second", ["accepted", "refused", "deferred", "unreachable"])
@pytest.mark.parametrize(("first", "state"), [("accepted", "sent"), ("refused", "failed")])
async def test_what_is_sent_or_failed_never_moves_again(box, letter_id, first, state, second):
    database = box.live.database
    assert await database.write(record_letter, letter_id, Outcome(first, "why")) is None
    before = database.peek(find_letter, letter_id)

    assert await database.write(record_letter, letter_id, Outcome(second, "again")) is None

    assert before.state == state
    assert database.peek(find_letter, letter_id) == before


async def test_the_letter_is_given_up_when_its_next_attempt_would_come_after_the_evening(
    box, letter_id
):
    box.clock.set("2026-11-22T05:59:30Z")
    outcome = Outcome("deferred", "451")

    assert await box.live.database.write(record_letter, letter_id, outcome) is None
    assert box.live.database.peek(find_letter, letter_id).state == "failed"


async def test_after_a_restart_a_letter_waits_what_was_left_and_never_more(box, letter_id):
    database = box.live.database
    for _ in range(2):
        await database.write(record_letter, letter_id, Outcome("deferred", "451"))
    letter, now = database.peek(find_letter, letter_id), box.clock.now()

    assert remaining_delay(letter, now + 100_000) == 200
    assert remaining_delay(letter, now + 10**9) == 0
    assert remaining_delay(letter, now - 10**9) == 300


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


async def test_the_same_news_twice_at_once_is_one_letter(box, letters):
    id_ = await a_request(box)

    def twice(tx):
        accept(tx, id_, actor="staff:1")
        write_to_guest(tx, id_, "accepted")

    await box.live.database.write(twice)

    assert [kind for kind, *_ in letters()] == ["accepted"]
