import pytest

from appliance.email.worker import EmailWorker
from tests.unit.email.mail_servers import pass_time

MINUTE = 60


@pytest.mark.parametrize("missing", ["host", "sender"])
async def test_without_a_mail_server_or_a_sender_letters_fail_at_once_and_wait(
    at_port, clock, a_letter, letter_row, missing
):
    email_worker = EmailWorker(at_port(25, **{missing: ""}))
    await email_worker.start()
    letter_id = await a_letter()

    assert await email_worker.send_now(letter_id) == "failed"
    assert letter_row(letter_id).state == "waiting"
    await email_worker.close()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": "cancelled"}, "the reservation is cancelled"),
        ({"date": "2026-11-18"}, "the evening is over"),
        (
            {"kind": "reminder", "date": "2026-11-20", "slot": "12:00", "starts": 720, "ends": 800},
            "it is too late for a reminder",
        ),
        ({"kind": "reminder", "checked_in_at": 1}, "it is too late for a reminder"),
        ({"recipient": "two words@guest.example"}, "the address cannot be used"),
    ],
)
async def test_a_letter_that_has_nothing_left_to_say_is_not_sent(
    email_worker, a_letter, mailbox, letter_row, change, reason
):
    letter_id = await a_letter(**change)

    assert await email_worker.send_now(letter_id) == "failed"
    row = letter_row(letter_id)
    assert (row.state, row.trouble) == ("failed", reason)
    assert mailbox.messages == []


async def test_an_erased_recipient_is_written_to_no_more(
    email_worker, environment, a_letter, mailbox, letter_row, clock
):
    mailbox.refuse("deferred")
    letter_id = await a_letter()
    await email_worker.send_now(letter_id)
    await environment.database.write(lambda tx: tx.execute("UPDATE email SET recipient = NULL"))
    mailbox.accept()
    await pass_time(email_worker, clock, MINUTE)

    assert letter_row(letter_id).trouble == "the address was erased"
    assert mailbox.messages == []


async def test_a_letter_that_is_kept_is_said_to_be_sent_and_is_not(
    email_worker, a_letter, mailbox, letter_row
):
    letter_id = await a_letter(keep=True)

    assert await email_worker.send_now(letter_id) == "sent"
    assert letter_row(letter_id).state == "kept"
    assert mailbox.messages == []
