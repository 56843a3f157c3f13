import pytest

from appliance.email.worker import EmailWorker
from tests.unit.email.mail_servers import pass_time

MINUTE = 60


@pytest.mark.parametrize("missing", ["host", "sender"])
async def test_emails_wait_if_no_mail_server_or_sender_is_configured(
    at_port, clock, an_email, email_row, missing
):
    email_worker = EmailWorker(at_port(25, **{missing: ""}))
    await email_worker.start()
    email_id = await an_email()

    assert await email_worker.send_now(email_id) == "failed"
    assert email_row(email_id).state == "waiting"
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
    email_worker, an_email, mailbox, email_row, change, reason
):
    email_id = await an_email(**change)

    assert await email_worker.send_now(email_id) == "failed"
    row = email_row(email_id)
    assert (row.state, row.trouble) == ("failed", reason)
    assert mailbox.messages == []


async def test_an_erased_guest_gets_no_more_emails(
    email_worker, environment, an_email, mailbox, email_row, clock
):
    mailbox.refuse("deferred")
    email_id = await an_email()
    await email_worker.send_now(email_id)
    await environment.database.write(lambda tx: tx.execute("UPDATE email SET recipient = NULL"))
    mailbox.accept()
    await pass_time(email_worker, clock, MINUTE)

    assert email_row(email_id).trouble == "the address was erased"
    assert mailbox.messages == []


async def test_in_the_test_environment_an_email_is_stored_as_sent_but_not_sent(
    email_worker, an_email, mailbox, email_row
):
    email_id = await an_email(keep=True)

    assert await email_worker.send_now(email_id) == "sent"
    assert email_row(email_id).state == "kept"
    assert mailbox.messages == []
