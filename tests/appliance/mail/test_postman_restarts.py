import asyncio

from appliance.mail.postman import Postman
from tests.appliance.mail.mail_servers import settle, until

MINUTE = 60


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
    died.wake()
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


async def test_what_a_machine_slept_is_taken_off_the_wait_for_the_next_attempt(
    environment, clock, mailbox, a_letter, letter_row
):
    mailbox.refuse("deferred")
    letter_id = await a_letter()
    postman = Postman(environment, clock, mailbox)
    await postman.start()
    await postman.send_now(letter_id)
    await settle(postman)
    mailbox.accept()

    postman.wake()
    await settle(postman)
    assert letter_row(letter_id).state == "waiting"
    clock.milliseconds += 10 * MINUTE * 1000  # and the monotonic clock did not count it
    postman.look_anew()

    await until(lambda: letter_row(letter_id).state == "sent")
    await postman.close()


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

    postman._answer_within = 0.1
    await postman.close()

    assert await asked == "failed"
    assert letter_row(letter_id).state == "waiting"
