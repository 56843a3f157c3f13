import pytest

from appliance.email.worker import EmailWorker
from tests.unit.email.mail_servers import pass_time

MINUTE = 60


@pytest.mark.parametrize("missing", ["host", "sender"])
async def test_emails_wait_if_no_mail_server_or_sender_is_configured(
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
async def test_an_email_that_became_pointless_is_not_sent(
    email_worker, a_letter, mailbox, letter_row, change, reason
):
    letter_id = await a_letter(**change)

    assert await email_worker.send_now(letter_id) == "failed"
    row = letter_row(letter_id)
    assert (row.state, row.trouble) == ("failed", reason)
    assert mailbox.messages == []


async def test_an_erased_guest_gets_no_more_emails(
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


async def test_in_the_test_environment_an_email_is_stored_as_sent_but_not_sent(
    email_worker, a_letter, mailbox, letter_row
):
    letter_id = await a_letter(keep=True)

    assert await email_worker.send_now(letter_id) == "sent"
    assert letter_row(letter_id).state == "kept"
    assert mailbox.messages == []
