import asyncio

import pytest

from appliance.doctor import partners
from appliance.settings import MailSettings

GOOD = {"host": "mail.example", "sender": "riad@box.example", "user": "u", "password": "p"}


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "ok"),
        ({"host": ""}, "warn"),
        ({"sender": ""}, "fail"),
        ({"password": ""}, "fail"),
        ({"user": "", "password": ""}, "ok"),
        ({"security": "none"}, "warn"),
    ],
)
def test_the_mail_settings_are_complete(ward, changes, status):
    ward.set(mail={**GOOD, **changes})

    assert ward.status("mail") == status


def test_no_mail_server_is_reached_unless_told_to(ward, monkeypatch):
    async def never(_settings):
        raise AssertionError

    monkeypatch.setattr(partners, "_sign_in", never)

    assert ward.status("mail_server") is None


@pytest.mark.parametrize(
    ("trouble", "status"), [(None, "ok"), ("sign-in refused with 535", "fail")]
)
def test_the_mail_server_is_asked_when_told_to(ward, monkeypatch, trouble, status):
    asked = []

    async def answer(settings):
        asked.append(settings.host)
        return trouble

    monkeypatch.setattr(partners, "_sign_in", answer)
    ward.become(online=True)

    assert ward.status("mail_server") == status
    assert set(asked) == {"mail.example"}


async def test_a_mail_server_that_is_not_there_is_one_word(unused_tcp_port):
    settings = MailSettings(host="127.0.0.1", port=unused_tcp_port, security="none", sender="a@b.c")

    assert await partners._sign_in(settings) == "SMTPConnectError"


async def test_a_mail_server_that_says_nothing_is_given_up(monkeypatch, unused_tcp_port):
    monkeypatch.setattr(partners, "MAIL_DEADLINE", 0.1)

    ended = asyncio.Event()

    async def silent(reader, writer):
        await reader.read()
        writer.close()
        await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(silent, "127.0.0.1", unused_tcp_port)
    async with server:
        settings = MailSettings(host="127.0.0.1", port=unused_tcp_port, security="none")
        assert await partners._sign_in(settings) == "TimeoutError"
        await ended.wait()


def an_endpoint(ward, *, failures=0, outcome="delivered", active=1):
    ward.write(
        """INSERT INTO endpoint (id, url, events, active, created_at, secret, failures_in_a_row,
               last_outcome)
           VALUES ('e', 'https://partner.example/hook', '[]', :active, 0, x'', :failures, :outcome)
        """,
        failures=failures, outcome=outcome, active=active,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("endpoint", "status"),
    [
        ({}, "ok"),
        ({"failures": 1, "outcome": "timeout"}, "ok"),
        ({"failures": 5, "outcome": "http_500"}, "warn"),
        ({"failures": 1, "outcome": "blocked"}, "warn"),
        ({"failures": 9, "outcome": "http_500", "active": 0}, "ok"),
    ],
)
def test_an_endpoint_that_takes_nothing_is_named(ward, endpoint, status):
    an_endpoint(ward, **endpoint)

    found = ward.find("endpoints")

    assert found.status == status
    assert ("https://partner.example/hook" in found.finding.en) == (status == "warn")


@pytest.mark.parametrize(
    ("state", "hours_ago", "status"),
    [("dead", 1, "warn"), ("dead", 24 * 8, "ok"), ("pending", 0, "ok"), ("pending", 2, "warn"),
     ("delivered", 1, "ok"), ("cancelled", 1, "ok")],
)  # fmt: skip
def test_deliveries_that_died_or_wait_are_counted(ward, state, hours_ago, status):
    an_endpoint(ward)
    at = ward.patient.clock.now() - hours_ago * 3_600_000
    ward.write("INSERT INTO event (seq, type, occurred_at) VALUES (1, 'webhook.test', :at)", at=at)
    ward.write(
        """INSERT INTO delivery (id, endpoint_id, event_seq, state, due_at, finished_at)
           VALUES ('d', 'e', 1, :state, :at, :at)""",
        state=state, at=at,
    )  # fmt: skip

    assert ward.status("deliveries") == status
