"""Sending to mail servers that accept, refuse, hang, or do not speak SMTP."""

import asyncio
import logging
import time

import pytest

from appliance.core.settings import MailSettings
from appliance.email.smtp import send_once
from appliance.email.worker import EmailWorker
from appliance.reservations.email_queue import find_email
from tests.unit.email.conftest import GUEST
from tests.unit.email.mail_servers import (
    Handler,
    converse,
    settle,
    smtp_server,
)
from tests.webhooks.receivers import a_server


@pytest.mark.parametrize(
    ("stage", "answer", "state", "trouble"),
    [
        ("rcpt", "550 5.1.1 <{guest}> no such user", "failed", "recipient refused with 550 5.1.1"),
        ("rcpt", "553 {guest} unknown", "failed", "recipient refused with 553"),
        ("rcpt", "452 4.2.2 {guest} is full", "waiting", "recipient refused with 452 4.2.2"),
        ("rcpt", "550 5.7.1 relaying denied", "waiting",
         "settings: not allowed to send: 550 5.7.1"),
        ("rcpt", "421 4.3.2 going down", "waiting", "the mail server responded with 421 4.3.2"),
        ("mail", "550 5.1.8 sender unknown", "waiting", "settings: sender refused with 550 5.1.8"),
        ("mail", "530 5.7.0 sign in first", "waiting",
         "settings: not allowed to send: 530 5.7.0"),
        ("mail", "451 4.3.0 later", "waiting", "sender refused with 451 4.3.0"),
        ("data", "554 5.6.0 no thanks {guest}", "failed", "email refused with 554 5.6.0"),
        ("data", "451 4.3.0 later", "waiting", "email refused with 451 4.3.0"),
    ],
)  # fmt: skip
async def test_the_status_code_of_the_mail_server_decides_between_retrying_and_giving_up(
    deliver, caplog, stage, answer, state, trouble
):
    with caplog.at_level(logging.DEBUG, "appliance"):
        async with smtp_server() as (port, handler):
            setattr(handler, stage, answer.format(guest=GUEST))
            outcome, row, _ = await deliver(port)

    assert outcome == "failed"
    assert (row.state, row.trouble) == (state, trouble)
    assert handler.envelopes == []
    assert GUEST not in caplog.text


@pytest.mark.parametrize(
    ("answer", "connections"),
    [("421 4.7.0 so many and no more", 3), ("451 4.7.0 rate of a session", 3), (None, 1)],
)
async def test_waiting_emails_share_as_few_connections_as_the_server_allows(
    at_port, an_email, clock, answer, connections
):
    class Moody(Handler):
        async def handle_MAIL(self, server, session, envelope, address, options):  # noqa: N802
            if answer and sum(one is session for one in self.sessions) == 2:
                return answer
            return await super().handle_MAIL(server, session, envelope, address, options)

    for _ in range(5):
        await an_email()
    async with smtp_server(Moody()) as (port, handler):
        email_worker = EmailWorker(at_port(port))
        await email_worker.start()
        email_worker.wake()
        await settle(email_worker)
        await email_worker.close()

    assert len(handler.envelopes) == 5
    assert len({id(session) for session in handler.sessions}) == connections


async def test_an_international_address_needs_a_server_with_smtputf8(deliver):
    async with smtp_server() as (port, handler):
        outcome, _, _ = await deliver(port, recipient="zoë@guest.example")
    assert outcome == "sent"
    assert handler.envelopes[0].mail_from == "table@riad.example"
    assert handler.envelopes[0].rcpt_tos == ["zoë@guest.example"]
    assert "SMTPUTF8" in handler.envelopes[0].mail_options

    async with smtp_server(enable_SMTPUTF8=False) as (port, handler):
        outcome, row, _ = await deliver(port, recipient="zoë@guest.example")
    assert (outcome, row.state) == ("failed", "failed")
    assert row.trouble == "the mail server does not support SMTPUTF8"


@pytest.mark.slow
async def test_a_mail_server_that_never_responds_is_given_up_after_five_seconds(deliver):
    async def silent(reader, _writer):
        await reader.read()

    async with a_server(silent) as port:
        before = time.monotonic()
        outcome, row, _ = await deliver(port)
        took = time.monotonic() - before

    assert (outcome, row.state) == ("failed", "waiting")
    assert 4.9 < took < 40  # the time limit of the SMTP dialogue alone is 60 s


async def test_an_email_counts_as_sent_if_the_server_hangs_at_quit(deliver):
    async with a_server(lambda r, w: converse(r, w, until="accepted")) as port:
        outcome, row, _ = await deliver(port)

    assert (outcome, row.state) == ("sent", "sent")


async def test_a_server_that_hangs_while_receiving_an_email_is_given_up(deliver):
    async def swallow(reader, writer):
        await converse(reader, writer, until="body")
        await reader.read()

    async with a_server(swallow) as port:
        outcome, row, email_worker = await deliver(
            port, answer_within=0.1, deadlines={"data_within": 0.5}
        )
        assert (outcome, row.state) == ("failed", "waiting")
        await settle(email_worker)

    assert email_worker._environment.database.peek(find_email, row.id).attempts == 1


async def test_an_email_is_not_sent_again_while_the_server_is_slow_to_accept_it(deliver, email_row):
    class Pondering(Handler):
        async def handle_DATA(self, server, session, envelope):  # noqa: N802
            await asyncio.sleep(0.8)
            return await super().handle_DATA(server, session, envelope)

    async with smtp_server(Pondering()) as (port, handler):
        outcome, row, email_worker = await deliver(
            port, answer_within=0.1, deadlines={"envelope_within": 0.4}
        )
        assert outcome == "failed"
        await settle(email_worker)

    assert email_row(row.id).state == "sent"
    assert len(handler.envelopes) == 1


class Strict(Handler):
    """A mail server that refuses clients which greet as `localhost`."""

    def __init__(self):
        super().__init__()
        self.greeted = []

    async def handle_EHLO(self, _server, session, _envelope, hostname, responses):  # noqa: N802
        self.greeted.append(hostname)
        session.host_name = hostname
        return ["421 go away"] if hostname == "localhost" else responses


@pytest.mark.parametrize(
    ("sender", "domain"),
    [("table@riad.example", "riad.example"), ("table@café.ma", "xn--caf-dma.ma")],
)
async def test_the_connection_test_uses_the_same_steps_as_a_real_email(sender, domain):
    async with smtp_server(Strict()) as (port, handler):
        settings = MailSettings(host="127.0.0.1", port=port, security="none", sender=sender)

        outcome = await send_once(settings, "boss@café.ma", "Café l’Été", "Essai", "Tout va bien…")

    assert outcome.result == "accepted"
    assert handler.greeted == [domain]
    [envelope] = handler.envelopes
    assert envelope.mail_from.endswith(f"@{domain}")
    assert envelope.rcpt_tos == ["boss@xn--caf-dma.ma"]
    assert envelope.content.isascii()
