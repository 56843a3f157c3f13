import asyncio
import logging
import time

import pytest

from appliance.actions.queue_letter import queue_letter
from appliance.clock import SystemClock
from appliance.errors import Unavailable
from appliance.mail.postman import Postman
from appliance.store.letters import find_letter

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.fixture
async def postman(environment, clock, mailbox):
    started = Postman(environment, clock, mailbox)
    await started.start()
    yield started
    await started.close()


async def settle(postman):
    """Let everything that is under way come to its end."""
    await until(lambda: not postman._in_flight and postman._round is None)


async def until(condition):
    """Wait until something has come true; TimeoutError when it does not."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - no hook for tests
            await asyncio.sleep(0.005)


async def pass_time(postman, clock, seconds):
    clock.advance(seconds)
    postman.wake()
    await settle(postman)


async def test_an_accepted_letter_is_sent_once_and_the_postman_is_idle_after(
    postman, a_letter, mailbox, letter_row
):
    letter_id = await a_letter()

    assert await postman.send_now(letter_id) == "sent"
    assert await postman.send_now(letter_id) == "sent"

    row = letter_row(letter_id)
    assert (row.state, row.attempts, row.trouble) == ("sent", 1, None)
    assert row.sent_at is not None
    assert len(mailbox.messages) == 1
    assert postman._timer is None


async def test_a_queued_letter_is_sent_without_anybody_asking(postman, a_letter, mailbox):
    await a_letter()
    await settle(postman)

    assert len(mailbox.messages) == 1


async def test_a_failed_letter_climbs_the_ladder_until_it_is_accepted(
    postman, a_letter, mailbox, letter_row, clock
):
    mailbox.refuse("deferred", "451")
    letter_id = await a_letter(date="2026-12-31")
    assert await postman.send_now(letter_id) == "failed"

    for n, wait in enumerate([MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, DAY, DAY], 1):
        row = letter_row(letter_id)
        assert (row.state, row.attempts, row.trouble) == ("waiting", n, "451")
        assert row.due_at == clock.now() + wait * 1000
        await pass_time(postman, clock, wait - 1)
        assert letter_row(letter_id).attempts == n
        await pass_time(postman, clock, 1)

    mailbox.accept()
    await pass_time(postman, clock, DAY)
    assert letter_row(letter_id).state == "sent"
    assert len(mailbox.messages) == 1


async def test_a_letter_is_given_up_once_the_evening_is_over(
    postman, a_letter, mailbox, letter_row, clock
):
    clock.set("2026-11-22T05:57:00Z")
    mailbox.refuse("deferred", "451")
    letter_id = await a_letter()
    await postman.send_now(letter_id)
    assert letter_row(letter_id).state == "waiting"

    await pass_time(postman, clock, MINUTE)

    assert letter_row(letter_id).state == "failed"
    assert postman._timer is None


async def test_a_permanent_refusal_is_final_and_kept_with_its_reason(
    postman, a_letter, mailbox, letter_row, clock
):
    mailbox.refuse("refused", "recipient refused with 550 5.1.1")
    letter_id = await a_letter()

    assert await postman.send_now(letter_id) == "failed"
    mailbox.accept()
    await pass_time(postman, clock, DAY)

    row = letter_row(letter_id)
    assert (row.state, row.trouble) == ("failed", "recipient refused with 550 5.1.1")
    assert await postman.send_now(letter_id) == "failed"
    assert mailbox.messages == []


async def test_a_slow_server_answers_failed_in_time_and_the_attempt_goes_on(
    postman, a_letter, mailbox, letter_row
):
    postman._answer_within = 0.2
    mailbox.gate.clear()
    letter_id = await a_letter()

    before = time.monotonic()
    assert await postman.send_now(letter_id) == "failed"
    assert 0.15 < time.monotonic() - before < 2

    mailbox.gate.set()
    await settle(postman)
    assert letter_row(letter_id).state == "sent"
    assert len(mailbox.messages) == 1


async def test_a_server_that_hangs_for_good_is_left_and_tried_again(
    postman, a_letter, mailbox, letter_row, clock
):
    mailbox.gate.clear()
    postman._attempt_within = 0.3
    letter_id = await a_letter()
    assert await postman.send_now(letter_id) == "failed"
    await settle(postman)
    postman._attempt_within = 60
    row = letter_row(letter_id)
    assert (row.state, row.attempts) == ("waiting", 1)
    assert row.trouble == "the mail server did not answer in time"

    mailbox.gate.set()
    await pass_time(postman, clock, MINUTE)

    assert letter_row(letter_id).state == "sent"


async def test_a_letter_is_never_in_two_hands_at_once(postman, a_letter, mailbox, clock):
    mailbox.gate.clear()
    letter_id = await a_letter()
    asked = [asyncio.create_task(postman.send_now(letter_id)) for _ in range(10)]
    await until(lambda: mailbox.sending)
    clock.advance(DAY)
    postman.wake()
    mailbox.gate.set()

    assert set(await asyncio.gather(*asked)) == {"sent"}
    assert mailbox.most_at_once == 1
    assert len(mailbox.messages) == 1


async def test_the_retries_of_a_dead_server_are_one_knock_a_minute(
    postman, a_letter, mailbox, clock
):
    mailbox.refuse("unreachable", "no connection")
    for _ in range(6):
        await postman.send_now(await a_letter())
    knocks = []
    original = type(mailbox).__call__

    async def counted(message):
        knocks.append(message)
        await original(mailbox, message)

    postman._send = counted
    await pass_time(postman, clock, MINUTE)
    assert len(knocks) == 1

    mailbox.accept()
    await pass_time(postman, clock, HOUR)
    assert len(mailbox.messages) == 6


async def test_new_letters_do_not_wait_behind_retries(postman, a_letter, mailbox, clock):
    mailbox.refuse("deferred")
    for _ in range(3):
        await postman.send_now(await a_letter())
    mailbox.accept()
    mailbox.gate.clear()
    clock.advance(MINUTE)
    postman.wake()
    await until(lambda: mailbox.sending)
    await asyncio.sleep(0.05)
    assert mailbox.sending == 1

    fresh = asyncio.create_task(postman.send_now(await a_letter(customer_name="Fresh")))
    await until(lambda: mailbox.sending == 2)
    mailbox.gate.set()
    assert await fresh == "sent"


async def test_after_a_restart_everything_that_waits_is_sent_and_nothing_that_was(
    tmp_path, open_at, environment, clock, mailbox, a_letter
):
    sent_id = await a_letter()
    first = Postman(environment, clock, mailbox)
    await first.start()
    assert await first.send_now(sent_id) == "sent"
    await first.close()
    waiting_id = await a_letter()
    await environment.database.close()

    again = await open_at(tmp_path / "live.db")
    second = Postman(again, clock, mailbox)
    await second.start()
    second.wake()
    await settle(second)
    await second.close()
    await again.database.close()

    ids = [message["Message-ID"].split("@")[0].strip("<") for message in mailbox.messages]
    assert ids == [sent_id, waiting_id]


async def test_what_was_in_flight_when_the_box_died_is_sent_again_under_the_same_message_id(
    environment, clock, mailbox, a_letter, letter_row
):
    letter_id = await a_letter()
    died = Postman(environment, clock, mailbox)
    await died.start()

    async def die(*_):
        raise asyncio.CancelledError

    died._record = die
    died._begin(letter_id, died._fresh)
    await settle(died)
    assert letter_row(letter_id).state == "waiting"

    restarted = Postman(environment, clock, mailbox)
    await restarted.start()
    restarted.wake()
    await settle(restarted)
    await restarted.close()

    first, second = mailbox.messages
    assert first["Message-ID"] == second["Message-ID"]
    assert letter_row(letter_id).state == "sent"


async def test_an_accepted_letter_that_could_not_be_recorded_is_not_sent_again(
    postman, environment, a_letter, mailbox, letter_row, clock, monkeypatch
):
    letter_id = await a_letter()
    await settle(postman)
    mailbox.messages.clear()
    letter_id = await a_letter()
    write = type(environment.database).write

    async def full(*_, **__):
        raise Unavailable

    monkeypatch.setattr(type(environment.database), "write", full)
    await settle(postman)
    assert letter_row(letter_id).state == "waiting"
    monkeypatch.setattr(type(environment.database), "write", write)
    await pass_time(postman, clock, MINUTE)

    assert letter_row(letter_id).state == "sent"
    assert len(mailbox.messages) == 1


async def test_the_timer_itself_brings_the_retry(environment, clock, mailbox, a_letter):
    mailbox.refuse("deferred")
    letter_id = await a_letter()
    postman = Postman(environment, SystemClock(), mailbox)
    await postman.start()
    await postman.send_now(letter_id)
    mailbox.accept()
    postman._due[letter_id] = time.monotonic() + 0.3
    postman._arm()

    await asyncio.sleep(0.05)
    assert mailbox.messages == []
    await until(lambda: mailbox.messages)
    await settle(postman)
    assert len(mailbox.messages) == 1
    assert postman._timer is None
    await postman.close()


async def test_a_restart_waits_no_longer_than_planned_when_the_clock_had_been_wrong(
    environment, clock, mailbox, a_letter, letter_row
):
    mailbox.refuse("deferred")
    clock.set("2026-11-21T20:00:00Z")
    letter_id = await a_letter()
    first = Postman(environment, clock, mailbox)
    await first.start()
    await first.send_now(letter_id)
    await first.close()
    clock.set("2026-10-22T20:00:00Z")
    mailbox.accept()

    second = Postman(environment, clock, mailbox)
    await second.start()
    clock.advance(MINUTE)
    second.wake()
    await settle(second)
    await second.close()

    assert letter_row(letter_id).state == "sent"


async def test_letters_that_waited_for_the_owner_are_tried_at_once_after_a_restart(
    environment, clock, mailbox, a_letter, letter_row
):
    mailbox.refuse("unreachable", "settings: sign-in refused with 535")
    letter_id = await a_letter(date="2026-12-31")
    first = Postman(environment, clock, mailbox)
    await first.start()
    await first.send_now(letter_id)
    await first.close()
    assert letter_row(letter_id).state == "waiting"
    mailbox.accept()

    second = Postman(environment, clock, mailbox)
    await second.start()
    second.wake()
    await settle(second)
    await second.close()

    assert letter_row(letter_id).state == "sent"


async def test_without_a_mail_server_letters_fail_at_once_and_wait(
    at_port, clock, a_letter, letter_row
):
    postman = Postman(at_port(25, host=""), clock)
    await postman.start()
    letter_id = await a_letter()

    assert await postman.send_now(letter_id) == "failed"
    assert letter_row(letter_id).state == "waiting"
    assert postman._timer is None
    await postman.close()


async def test_without_a_sender_letters_wait_for_the_owner(
    at_port, clock, a_letter, letter_row, mailbox
):
    postman = Postman(at_port(25, sender=""), clock, mailbox)
    await postman.start()
    letter_id = await a_letter()

    assert await postman.send_now(letter_id) == "failed"
    row = letter_row(letter_id)
    assert (row.state, row.trouble) == ("waiting", "settings: mail.sender is not an address")
    await postman.close()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": "cancelled"}, "the reservation is cancelled"),
        ({"date": "2026-11-18"}, "the evening is over"),
        ({"recipient": "two words@guest.example"}, "the address cannot be used"),
    ],
)
async def test_a_letter_that_has_nothing_left_to_say_is_not_sent(
    postman, a_letter, mailbox, letter_row, change, reason
):
    letter_id = await a_letter(**change)

    assert await postman.send_now(letter_id) == "failed"
    row = letter_row(letter_id)
    assert (row.state, row.trouble) == ("failed", reason)
    assert mailbox.messages == []


async def test_an_erased_recipient_is_written_to_no_more(
    postman, environment, a_letter, mailbox, letter_row, clock
):
    mailbox.refuse("deferred")
    letter_id = await a_letter()
    await postman.send_now(letter_id)
    await environment.database.write(lambda tx: tx.execute("UPDATE letter SET recipient = NULL"))
    mailbox.accept()
    await pass_time(postman, clock, MINUTE)

    assert letter_row(letter_id).trouble == "the address was erased"
    assert mailbox.messages == []


async def test_our_own_fault_costs_one_step_of_the_ladder_and_tells_no_name(
    postman, a_letter, mailbox, letter_row, clock, caplog
):
    async def broken(message):
        raise RuntimeError(f"cannot write to {message['To']}")

    postman._send = broken
    letter_id = await a_letter()
    with caplog.at_level(logging.DEBUG, "appliance"):
        assert await postman.send_now(letter_id) == "failed"
    assert letter_row(letter_id).trouble == "our own fault: RuntimeError"
    assert "guest.example" not in caplog.text
    postman._send = mailbox
    await pass_time(postman, clock, MINUTE)

    assert letter_row(letter_id).state == "sent"


async def test_closing_lets_the_letter_in_flight_arrive(environment, clock, mailbox, a_letter):
    postman = Postman(environment, clock, mailbox)
    await postman.start()
    mailbox.gate.clear()
    await a_letter()
    await until(lambda: mailbox.sending)
    asyncio.get_running_loop().call_later(0.1, mailbox.gate.set)

    await postman.close()

    assert len(mailbox.messages) == 1
    assert await postman.send_now(await a_letter()) == "failed"


async def test_closing_does_not_wait_for_a_server_that_hangs(
    environment, clock, mailbox, a_letter, letter_row
):
    postman = Postman(environment, clock, mailbox)
    await postman.start()
    mailbox.gate.clear()
    letter_id = await a_letter()
    asked = asyncio.create_task(postman.send_now(letter_id))
    await until(lambda: mailbox.sending)
    before = time.monotonic()

    postman._answer_within = 0.1
    await postman.close()

    assert time.monotonic() - before < 3
    assert await asked == "failed"
    assert letter_row(letter_id).state == "waiting"


async def test_the_test_environment_keeps_its_letters_and_says_sent(
    kept_environment, clock, mailbox
):
    postman = Postman(kept_environment, clock, mailbox)
    await postman.start()
    letter_id = await kept_environment.database.write(_keep)

    assert await postman.send_now(letter_id) == "sent"
    assert kept_environment.database.peek(find_letter, letter_id).state == "kept"
    assert mailbox.messages == []
    await postman.close()


def _keep(tx):
    reservation_id = tx.new_id()
    table_id = tx.value("SELECT id FROM venue_table")
    tx.insert(
        "reservation",
        {"id": reservation_id, "status": "confirmed", "source": "partner", "table_id": table_id,
         "date": "2026-11-21", "starts": 0, "ends": 2880, "guests": 2, "customer_name": "Ali",
         "access_code": "SVC-7K2M", "pass_id": b"12345678", "link_expires_at": 0,
         "created_at": tx.now, "updated_at": tx.now},
    )  # fmt: skip
    return queue_letter(tx, reservation_id, "confirmation", "ali@guest.example", None, keep=True)
