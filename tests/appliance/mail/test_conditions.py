"""Mail that cannot leave is a condition of the box: one plain sentence, gone when it leaves."""

import socket

import pytest

from appliance.actions.record_letter import record_letter
from appliance.mail.outbox import render_letter
from appliance.mail.postman import Postman
from appliance.mail.smtp import SmtpSender, Undelivered
from appliance.model.letter import Outcome
from appliance.settings import MailSettings
from appliance.store.conditions import list_conditions
from tests.appliance.mail.mail_servers import Handler, settle, smtp_server

SETTINGS = "no letter leaves until mail.* is corrected: "


@pytest.fixture
def conditions(environment):
    return lambda: [(c.name, c.detail) for c in environment.database.peek(list_conditions)]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("535 5.7.8 no", "not allowed to send: 535 5.7.8"),
        ("530 5.7.0 sign in first", "not allowed to send: 530 5.7.0"),
        ("550 5.1.0 who are you", "sender refused with 550 5.1.0"),
    ],
)
async def test_a_server_that_does_not_let_us_send_is_said_to_need_other_settings(
    at_port, a_letter, clock, conditions, answer, sentence
):
    handler = Handler()
    handler.mail = answer
    async with smtp_server(handler) as (port, _):
        postman = Postman(at_port(port), clock)
        await postman.start()
        letter_id = await a_letter()
        await settle(postman)
        assert conditions() == [("mail_settings", SETTINGS + sentence)]

        handler.mail = "250 OK"
        await postman.send_now(letter_id)
        await postman.close()

    assert conditions() == []


async def test_a_server_without_the_security_asked_for_needs_other_settings(
    at_port, a_letter, clock, conditions
):
    async with smtp_server() as (port, _):
        postman = Postman(at_port(port, security="starttls"), clock)
        await postman.start()
        await a_letter()
        await settle(postman)
        await postman.close()

    ((name, detail),) = conditions()
    assert name == "mail_settings"
    assert "lacks the security" in detail


async def test_a_name_that_is_not_found_says_what_to_look_at(monkeypatch, environment, a_letter):
    async def not_found(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.create_connection", not_found)
    sender = SmtpSender(MailSettings(host="mail.example", security="none", sender="a@b.example"))
    message = await render_letter(environment, await a_letter())
    with pytest.raises(Undelivered) as undelivered:
        await sender.send(message)

    trouble = undelivered.value.outcome.trouble
    assert trouble == "mail.host is not found: check its spelling and the way to the internet"


async def test_a_server_that_is_away_is_said_to_be_away(at_port, a_letter, clock, conditions):
    postman = Postman(at_port(1), clock)
    await postman.start()
    await a_letter()
    await settle(postman)
    await postman.close()

    ((name, detail),) = conditions()
    assert name == "mail_unreachable"
    assert detail.startswith("letters wait, and are tried again: no connection")


@pytest.mark.parametrize(
    ("outcome", "left"),
    [
        (Outcome("accepted"), 0),
        (Outcome("refused", "recipient refused with 550 5.1.1"), 0),
        (Outcome("refused", "the evening is over"), 1),
        (Outcome("deferred", "our own fault: KeyError"), 1),
    ],
)
async def test_only_a_server_that_spoke_ends_the_condition(
    environment, a_letter, conditions, outcome, left
):
    write = environment.database.write
    await write(record_letter, await a_letter(), Outcome("unreachable", "no connection"))

    await write(record_letter, await a_letter(), outcome)

    assert len(conditions()) == left


async def test_a_box_that_has_nothing_to_send_starts_without_old_complaints(
    environment, a_letter, clock, mailbox, conditions
):
    letter_id = await a_letter()
    write = environment.database.write
    await write(record_letter, letter_id, Outcome("unreachable", "no connection"))
    await write(record_letter, letter_id, Outcome("refused", "the evening is over"))

    postman = Postman(environment, clock, mailbox)
    await postman.start()
    await postman.close()

    assert conditions() == []
