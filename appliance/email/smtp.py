"""Send an email by SMTP and classify the server's reply for the next attempt."""

import asyncio
import contextlib
import email.utils
import re
import socket
import ssl
from collections.abc import Iterator
from email.headerregistry import Address
from email.message import EmailMessage
from typing import Protocol

import aiosmtplib

from appliance.core.i18n import mark as _
from appliance.core.settings import MailSettings
from appliance.email.rendering import Composer, UnusableAddress, read_contents
from appliance.environment import Environment
from appliance.reservations.emails import SETTINGS_TROUBLE, Outcome

SPEAK_WITHIN = 60.0  # seconds until the server is ready for DATA
TAKE_WITHIN = 600.0  # seconds for DATA; a shorter limit causes duplicates (RFC 5321, 4.5.3.2.6)
TRIAL_WITHIN = 15.0  # seconds for a whole test email

_ENHANCED = re.compile(r"[245]\.\d{1,3}\.\d{1,3}(?!\d)")
_SIGN_IN_FIRST = {530, 534, 535, 538}
_GOING_AWAY = 421
_PERMANENT = 500
_TOO_SLOW = Outcome("unreachable", _("the mail server did not answer in time"))
_REFUSED = {
    aiosmtplib.SMTPAuthenticationError: "sign-in",
    aiosmtplib.SMTPSenderRefused: "sender",
    aiosmtplib.SMTPRecipientRefused: "recipient",
    aiosmtplib.SMTPDataError: "letter",
}
_LOST_CONNECTION = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


class Undelivered(Exception):
    """The mail server did not accept the email. The outcome contains no personal data."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.trouble)
        self.outcome = outcome


class MailServer(Protocol):
    """A mail server that accepts one email at a time."""

    async def send(self, message: EmailMessage) -> None:
        """Send an email; return when the server has accepted it. Raises Undelivered if not."""

    def part(self) -> None:
        """Close the connection; no more emails follow for now."""


class SmtpSender:
    """The mail server in the settings. Verifies certificates unless `security` is `none`.

    Sends one email at a time. The connection stays open between emails, until `part`.
    """

    def __init__(
        self,
        settings: MailSettings,
        tls: ssl.SSLContext | None = None,
        *,
        speak_within: float = SPEAK_WITHIN,
        take_within: float = TAKE_WITHIN,
    ) -> None:
        """`tls` replaces the system's certificate authorities."""
        self._settings, self._tls = settings, tls
        self._speak_within, self._take_within = speak_within, take_within
        self._client: aiosmtplib.SMTP | None = None

    async def send(self, message: EmailMessage) -> None:
        """Send an email; return when the server has accepted it. Raises Undelivered if not.

        Cancellation closes the connection.
        """
        sender, recipient = message["From"].addresses[0], message["To"].addresses[0]
        raw = await asyncio.to_thread(message.as_bytes)
        try:
            with _judged():
                client = await self._introduce(sender, recipient)
                async with asyncio.timeout(self._take_within):
                    await client.data(raw)
        except BaseException:
            self.part()
            raise

    def part(self) -> None:
        """Send QUIT and close at once: after acceptance, errors no longer matter."""
        client, self._client = self._client, None
        if client is None:
            return
        with contextlib.suppress(aiosmtplib.SMTPException):
            if client.protocol is not None:
                client.protocol.write(b"QUIT\r\n")
        client.close()

    async def _introduce(self, sender: Address, recipient: Address) -> aiosmtplib.SMTP:
        """Return a connection whose envelope is accepted and that is ready for DATA.

        If a reused connection fails, retry on a new one: servers close idle connections or limit
        the number of emails per connection.
        """
        if self._client is not None:
            try:
                async with asyncio.timeout(self._speak_within):
                    await _envelope(self._client, sender, recipient)
            except (aiosmtplib.SMTPException, OSError):
                self.part()
            else:
                return self._client
        # The client gets a local hostname; without one, the library queries DNS first.
        client = self._client = _new_client(self._settings, sender.domain, self._tls)
        async with asyncio.timeout(self._speak_within):
            await _connect(client)
            await _envelope(client, sender, recipient)
        return client


async def send_email(
    environment: Environment, composer: Composer, server: MailServer, letter_id: str
) -> Outcome:
    """Render and send an email. Returns the outcome; raises only CancelledError."""
    try:
        await server.send(await _written(environment, composer, letter_id))
    except Undelivered as undelivered:
        return undelivered.outcome
    except UnusableAddress:
        return Outcome("refused", "the address cannot be used")
    except Exception as error:  # noqa: BLE001 - the email stays queued
        return Outcome("deferred", f"our own fault: {type(error).__name__}")
    return Outcome("accepted")


async def _written(environment: Environment, composer: Composer, letter_id: str) -> EmailMessage:
    """Render the email in a thread. Raises Undelivered if it cannot or must not be sent."""
    contents = await environment.database.read(read_contents, environment, letter_id)
    if contents.moot is not None:
        raise Undelivered(Outcome("refused", contents.moot))
    if not composer.has_sender:
        trouble = SETTINGS_TROUBLE + _("mail.sender is not an address")
        raise Undelivered(Outcome("unreachable", trouble))
    return await asyncio.to_thread(composer.compose, contents)


async def send_trial(settings: MailSettings, recipient: str, subject: str, text: str) -> Outcome:
    """Send a test email with these settings, within 15 s. Returns the outcome; stores nothing."""
    if not settings.host or not settings.sender:
        return _settings(_("mail.host or mail.sender is empty"))
    try:
        message = _compose(settings.sender, recipient, subject, text)
    except (ValueError, IndexError):
        return Outcome("refused", "an address cannot be used")
    server = SmtpSender(settings)
    try:
        async with asyncio.timeout(TRIAL_WITHIN):
            await server.send(message)
    except Undelivered as undelivered:
        return undelivered.outcome
    except TimeoutError:
        return _TOO_SLOW
    server.part()
    return Outcome("accepted")


def _compose(sender: str, recipient: str, subject: str, text: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = Address(addr_spec=sender)
    message["To"] = Address(addr_spec=recipient)
    message["Subject"] = subject
    message["Date"] = email.utils.localtime()
    message["Message-ID"] = email.utils.make_msgid("trial", "venuebox.invalid")
    message.set_content(text)
    return message


async def find_trouble(settings: MailSettings, within: float) -> str | None:
    """Connect and sign in to the mail server. Returns the failure, or None on success."""
    client = _new_client(settings, "localhost", None)
    try:
        with _judged():
            async with asyncio.timeout(within):
                await _connect(client)
    except Undelivered as undelivered:
        return undelivered.outcome.trouble
    finally:
        client.close()
    return None


def _new_client(settings: MailSettings, domain: str, tls: ssl.SSLContext | None) -> aiosmtplib.SMTP:
    return aiosmtplib.SMTP(
        hostname=settings.host,
        port=settings.port,
        username=settings.user or None,
        password=settings.password or None,
        use_tls=settings.security == "tls",
        start_tls=settings.security == "starttls",
        tls_context=tls,
        local_hostname=domain,
        timeout=None,
    )


@contextlib.contextmanager
def _judged() -> Iterator[None]:
    """Convert SMTP, TLS, network and timeout errors to Undelivered."""
    try:
        yield
    except aiosmtplib.SMTPException as error:
        raise Undelivered(_judge(error)) from None
    except TimeoutError:
        raise Undelivered(_TOO_SLOW) from None
    except OSError as error:
        raise Undelivered(_unreachable(error)) from None


async def _connect(client: aiosmtplib.SMTP) -> None:
    try:
        await client.connect()
    except ssl.SSLError:  # an untrusted certificate is a ValueError too
        raise
    except ValueError:
        raise Undelivered(_settings("mail.host or mail.sender cannot be used")) from None


async def _envelope(client: aiosmtplib.SMTP, sender: Address, recipient: Address) -> None:
    """Send MAIL FROM and RCPT TO, without the library's RSET after a rejection."""
    foreign = not (sender.addr_spec + recipient.addr_spec).isascii()
    if foreign and client.is_ehlo_or_helo_needed:
        with contextlib.suppress(aiosmtplib.SMTPHeloError):
            await client.ehlo()
    if foreign and not client.supports_extension("smtputf8"):
        raise Undelivered(Outcome("refused", "the mail server has no SMTPUTF8"))
    encoding, options = ("utf-8", ["SMTPUTF8"]) if foreign else ("ascii", [])
    try:
        await client.mail(sender.addr_spec, options=options, encoding=encoding)
        await client.rcpt(recipient.addr_spec, encoding=encoding)
    except ValueError:
        raise Undelivered(Outcome("refused", "an address cannot be used")) from None


def _judge(error: aiosmtplib.SMTPException) -> Outcome:
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return _judge_answer(error)
    if isinstance(error, OSError):
        return _unreachable(error)
    return _settings(_("the mail server lacks the security or the sign-in that was asked for"))


def _judge_answer(error: aiosmtplib.SMTPResponseException) -> Outcome:
    """Classify a reply: 5xx is permanent unless it concerns our authorisation to send."""
    code, permanent = _code(error), error.code >= _PERMANENT
    if permanent and (error.code in _SIGN_IN_FIRST or " 5.7." in code):
        return _settings(f"not allowed to send: {code}")
    what = next((what for kind, what in _REFUSED.items() if isinstance(error, kind)), None)
    trouble = f"{what} refused with {code}"
    if what in {"sign-in", "sender"}:
        return _settings(trouble) if permanent else Outcome("unreachable", trouble)
    if what is not None and error.code != _GOING_AWAY:
        return Outcome("refused" if permanent else "deferred", trouble)
    return Outcome("unreachable", f"the mail server answered {code}")


def _unreachable(error: BaseException) -> Outcome:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            why = _("mail.host is not found: check its spelling and the way to the internet")
            return Outcome("unreachable", why)
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, _LOST_CONNECTION):
            return _settings(f"no trusted TLS with the mail server ({cause.reason})")
        cause = cause.__cause__ or cause.__context__
    return Outcome("unreachable", _("no connection to the mail server, or it was lost"))


def _settings(trouble: str) -> Outcome:
    return Outcome("unreachable", SETTINGS_TROUBLE + trouble)


def _code(error: aiosmtplib.SMTPResponseException) -> str:
    """Return the codes only, such as `550 5.1.1`: the text often repeats the address."""
    enhanced = _ENHANCED.match(error.message)
    return f"{error.code} {enhanced[0]}" if enhanced else str(error.code)
