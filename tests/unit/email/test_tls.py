import base64
import functools
import ssl

import pytest
from aiosmtpd.smtp import AuthResult

from appliance.core.settings import MailSettings
from appliance.email.rendering import render_email
from appliance.email.smtp import SmtpSender, Undelivered
from tests.promises.webhooks.test_certificates import Certificate
from tests.unit.email.mail_servers import converse, smtp_server
from tests.webhooks.receivers import a_server


@pytest.fixture(scope="module")
def certificate():
    return Certificate("localhost")


@pytest.fixture
def server_tls(certificate):
    return certificate.context()


@pytest.fixture
async def message(environment, an_email):
    return await render_email(environment, await an_email())


def settings_for(port, security, **more):
    more = {"host": "localhost", "sender": "table@riad.example"} | more
    return MailSettings(port=port, security=security, **more)


async def test_starttls_protects_the_sign_in_and_the_email(server_tls, certificate, message):
    seen = []

    def check(_server, session, _envelope, mechanism, data):
        seen.append((mechanism, data.login, data.password, session.ssl is not None))
        return AuthResult(success=data.password == b"secret", handled=False)

    options = {"tls_context": server_tls, "require_starttls": True, "auth_required": True,
               "authenticator": check}  # fmt: skip
    trust = ssl.create_default_context(cadata=certificate.pem)
    async with smtp_server(**options) as (port, handler):
        settings = settings_for(port, "starttls", user="box", password="secret")
        await SmtpSender(settings, trust).send(message)
        assert len(handler.envelopes) == 1
        assert seen == [("PLAIN", b"box", b"secret", True)]

        wrong = settings_for(port, "starttls", user="box", password="wrong")
        with pytest.raises(Undelivered) as refused:
            await SmtpSender(wrong, trust).send(message)
    assert refused.value.outcome.result == "unreachable"
    assert refused.value.outcome.trouble.startswith("settings: ")
    assert "wrong" not in str(refused.value)
    assert base64.b64encode(b"wrong").decode() not in str(refused.value)


@pytest.mark.parametrize(("host", "trusted"), [("localhost", False), ("127.0.0.1", True)])
async def test_an_untrusted_certificate_or_one_for_another_name_is_refused(
    server_tls, certificate, message, host, trusted
):
    trust = ssl.create_default_context(cadata=certificate.pem if trusted else None)
    async with smtp_server(tls_context=server_tls) as (port, handler):
        with pytest.raises(Undelivered) as refused:
            await SmtpSender(settings_for(port, "starttls", host=host), trust).send(message)
    assert refused.value.outcome.trouble.startswith("settings: ")
    assert handler.envelopes == []


async def test_no_email_is_sent_if_the_server_does_not_offer_the_required_starttls(message):
    async with smtp_server() as (port, handler):
        with pytest.raises(Undelivered) as refused:
            await SmtpSender(settings_for(port, "starttls")).send(message)
    assert refused.value.outcome.trouble.startswith("settings: ")
    assert handler.envelopes == []


async def test_implicit_tls_is_supported_and_verified(server_tls, certificate, message):
    serve = functools.partial(converse, until="accepted")
    async with a_server(serve, ssl=server_tls) as port:
        trust = ssl.create_default_context(cadata=certificate.pem)
        await SmtpSender(settings_for(port, "tls"), trust).send(message)
        with pytest.raises(Undelivered) as refused:
            await SmtpSender(settings_for(port, "tls")).send(message)

    assert "no trusted TLS" in refused.value.outcome.trouble
