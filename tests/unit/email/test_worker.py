import asyncio

from appliance.core.errors import Unavailable
from tests.unit.email.mail_servers import pass_time, settle
from tests.waiting import until, within

MINUTE, HOUR, DAY = 60, 3600, 86400


async def test_an_accepted_email_is_sent_once_and_then_the_worker_is_idle(
    email_worker, environment, an_email, mailbox, email_row
):
    email_id = await an_email()

    assert await email_worker.send_now(email_id) == "sent"
    assert await email_worker.send_now(email_id) == "sent"

    row = email_row(email_id)
    assert (row.state, row.attempts, row.trouble) == ("sent", 1, None)
    assert row.sent_at is not None
    assert len(mailbox.messages) == 1
    assert environment.database.peek(email_worker.job.next_due) is None


async def test_a_failed_email_is_retried_at_growing_intervals_until_it_is_accepted(
    email_worker, an_email, mailbox, email_row, clock
):
    mailbox.refuse("deferred", "451")
    email_id = await an_email(date="2026-12-31")
    assert await email_worker.send_now(email_id) == "failed"

    for n, wait in enumerate([MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, DAY, DAY], 1):
        row = email_row(email_id)
        assert (row.state, row.attempts, row.trouble) == ("waiting", n, "451")
        assert row.due_at == clock.now() + wait * 1000
        await pass_time(email_worker, clock, wait - 1)
        assert email_row(email_id).attempts == n
        await pass_time(email_worker, clock, 1)

    mailbox.accept()
    await pass_time(email_worker, clock, DAY)
    assert email_row(email_id).state == "sent"
    assert len(mailbox.messages) == 1


async def test_an_email_is_given_up_after_the_evening_is_over(
    email_worker, environment, an_email, mailbox, email_row, clock
):
    clock.set("2026-11-22T05:57:00Z")
    mailbox.refuse("deferred", "451")
    email_id = await an_email()
    await email_worker.send_now(email_id)
    assert email_row(email_id).state == "waiting"

    await pass_time(email_worker, clock, MINUTE)

    assert email_row(email_id).state == "failed"
    assert environment.database.peek(email_worker.job.next_due) is None


async def test_a_hanging_mail_server_delays_one_booking_but_not_the_next_ones(
    email_worker, an_email, mailbox, email_row
):
    email_worker.answer_within = 0.2
    mailbox.gate.clear()
    first, second, third = [await an_email() for _ in range(3)]
    assert await email_worker.send_now(first) == "failed"
    email_worker.answer_within = 60.0

    for email_id in (second, third):
        async with within("an answer without a wait"):
            assert await email_worker.send_now(email_id) == "failed"
    mailbox.gate.set()
    await settle(email_worker)
    assert {email_row(id_).state for id_ in (first, second, third)} == {"sent"}
    assert len(mailbox.messages) == 3

    assert await email_worker.send_now(await an_email()) == "sent"


async def test_an_email_is_never_sent_by_two_workers_at_once(
    email_worker, an_email, mailbox, clock
):
    mailbox.gate.clear()
    email_id = await an_email()
    asked = [asyncio.create_task(email_worker.send_now(email_id)) for _ in range(10)]
    await until(lambda: mailbox.sending)
    clock.advance(DAY)
    email_worker.wake()
    mailbox.gate.set()

    assert set(await asyncio.gather(*asked)) == {"sent"}
    assert mailbox.most_at_once == 1
    assert len(mailbox.messages) == 1


async def test_bookings_succeed_while_the_mail_server_is_unreachable_and_emails_follow_later(
    email_worker, an_email, mailbox, email_row, clock
):
    mailbox.refuse("unreachable", "no connection")
    mailbox.gate.clear()
    ids = [await an_email() for _ in range(4)]
    asked = [asyncio.create_task(email_worker.send_now(email_id)) for email_id in ids]
    await until(lambda: mailbox.sending)
    mailbox.gate.set()

    assert set(await asyncio.gather(*asked)) == {"failed"}
    await settle(email_worker)
    assert mailbox.knocks == 1
    assert [email_row(email_id).attempts for email_id in ids] == [1, 0, 0, 0]
    mailbox.accept()
    await pass_time(email_worker, clock, MINUTE)
    assert {email_row(email_id).state for email_id in ids} == {"sent"}


async def test_an_email_that_crashes_every_server_does_not_block_the_others(
    email_worker, an_email, mailbox, email_row, clock
):
    mailbox.refuse("unreachable", "no connection, or it was lost")
    hopeless, *others = [await an_email() for _ in range(4)]
    await settle(email_worker)
    mailbox.accept()
    mailbox.hopeless = hopeless

    await pass_time(email_worker, clock, MINUTE)

    assert {email_row(email_id).state for email_id in others} == {"sent"}
    assert email_row(hopeless).state == "waiting"


async def test_while_results_cannot_be_stored_no_email_is_sent(
    email_worker, environment, an_email, mailbox, email_row, clock, monkeypatch
):
    mailbox.gate.clear()
    first, second = await an_email(), await an_email()
    await until(lambda: mailbox.sending)
    asked = asyncio.create_task(email_worker.send_now(second))

    async def full(*_, **__):
        raise Unavailable

    with monkeypatch.context() as full_disk:
        full_disk.setattr(type(environment.database), "write", full)
        mailbox.gate.set()
        await settle(email_worker)
        assert await asked == "failed"
        assert await email_worker.send_now(second) == "failed"
        await pass_time(email_worker, clock, MINUTE)
        assert email_row(first).state == "waiting"
        assert len(mailbox.messages) == 1
    await pass_time(email_worker, clock, MINUTE)

    assert {email_row(email_id).state for email_id in (first, second)} == {"sent"}
    assert len(mailbox.messages) == 2


async def test_closing_waits_for_the_email_being_sent(email_worker, mailbox, an_email):
    mailbox.gate.clear()
    await an_email()
    await until(lambda: mailbox.sending)
    asyncio.get_running_loop().call_later(0.1, mailbox.gate.set)

    await email_worker.close()

    assert len(mailbox.messages) == 1
    assert await email_worker.send_now(await an_email()) == "failed"


async def test_closing_does_not_wait_for_a_hanging_mail_server(
    email_worker, mailbox, an_email, email_row
):
    mailbox.gate.clear()
    email_id = await an_email()
    asked = asyncio.create_task(email_worker.send_now(email_id))
    await until(lambda: mailbox.sending)

    email_worker.answer_within = 0.1
    await email_worker.close()

    assert await asked == "failed"
    assert email_row(email_id).state == "waiting"
