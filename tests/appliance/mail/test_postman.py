import asyncio
import logging
import time

import pytest

from appliance.clock import SystemClock
from appliance.errors import Unavailable
from appliance.mail.postman import Postman
from tests.appliance.mail.mail_servers import pass_time, settle, until

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.fixture
async def postman(environment, clock, mailbox):
    started = Postman(environment, clock, mailbox)
    await started.start()
    yield started
    await started.close()


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
