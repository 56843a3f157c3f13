import pytest

from appliance.actions.queue_letter import LetterQueued, queue_letter
from appliance.actions.record_letter import record_letter
from appliance.model.letter import Outcome, remaining_delay, retry_delay
from appliance.store.letters import find_letter, get_letter, list_letters, list_waiting_letters
from appliance.store.reservations import insert_reservation
from tests.builders import TONIGHT, table_id

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


async def test_a_kind_of_letter_that_does_not_exist_leaves_no_trace(box):
    def queue(tx):
        return queue_letter(tx, book(tx), "love", GUEST, "fr", keep=False)

    with pytest.raises(ValueError, match="love"):
        await box.live.database.write(queue)
    assert box.live.database.peek(list_letters) == []


@pytest.mark.parametrize("second", ["accepted", "refused", "deferred", "unreachable"])
@pytest.mark.parametrize(("first", "state"), [("accepted", "sent"), ("refused", "failed")])
async def test_what_is_sent_or_failed_never_moves_again(box, letter_id, first, state, second):
    database = box.live.database
    assert await database.write(record_letter, letter_id, Outcome(first, "why")) is None
    before = database.peek(find_letter, letter_id)

    assert await database.write(record_letter, letter_id, Outcome(second, "again")) is None

    assert before.state == state
    assert database.peek(find_letter, letter_id) == before


async def test_an_attempt_that_failed_says_when_the_next_one_is_due(box, letter_id):
    database = box.live.database
    delay = await database.write(record_letter, letter_id, Outcome("deferred", "451"))

    letter = database.peek(find_letter, letter_id)
    assert delay == 60
    assert (letter.state, letter.attempts, letter.trouble) == ("waiting", 1, "451")
    assert letter.due_at == box.clock.now() + 60_000


async def test_the_letter_is_given_up_when_its_next_attempt_would_come_after_the_evening(
    box, letter_id
):
    box.clock.set("2026-11-22T05:59:30Z")
    outcome = Outcome("deferred", "451")

    assert await box.live.database.write(record_letter, letter_id, outcome) is None
    assert box.live.database.peek(find_letter, letter_id).state == "failed"


async def test_a_letter_that_is_gone_is_nobodys_trouble(box):
    missing = "018f0000-0000-7000-8000-00000000ffff"
    assert await box.live.database.write(record_letter, missing, Outcome("accepted")) is None


def test_the_ladder_is_a_minute_five_thirty_two_hours_six_and_then_daily():
    assert [retry_delay(n) for n in range(1, 8)] == [60, 300, 1800, 7200, 21600, 86400, 86400]


async def test_after_a_restart_a_letter_waits_what_was_left_and_never_more(box, letter_id):
    database = box.live.database
    for _ in range(2):
        await database.write(record_letter, letter_id, Outcome("deferred", "451"))
    letter, now = database.peek(find_letter, letter_id), box.clock.now()

    assert remaining_delay(letter, now + 100_000) == 200
    assert remaining_delay(letter, now + 10**9) == 0
    assert remaining_delay(letter, now - 10**9) == 300
