"""Send emails by SMTP, and decide from an error whether to try again."""

import asyncio
import contextlib
import email.utils
import re
import socket
import ssl
from collections.abc import Iterator
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

import aiosmtplib

from appliance.core.email_addresses import split_address
from appliance.core.i18n import mark as _
from appliance.core.settings import MailSettings
from appliance.reservations.email_queue import SETTINGS_TROUBLE, Outcome

_ONCE_SECONDS = 15.0  # time limit for sending a test email
_ADDRESS_DELIMITERS = re.compile(r'[()<>\[\]:;@\\,"=?]')
_DISPLAY_NAME_MAX = 45  # UTF-8 bytes, which Base64 encodes as 60 characters
_POLICY = SMTP.clone(cte_type="7bit", refold_source="none")
_ENHANCED_CODE = re.compile(r"[245]\.\d{1,3}\.\d{1,3}(?!\d)")
_AUTHENTICATION_REQUIRED = {530, 534, 535, 538}
_SHUTTING_DOWN = 421
_PERMANENT = 500
_HOST_UNKNOWN = _(
    "the mail server’s name was not found: check its spelling and the internet connection"
)
_TOO_SLOW = Outcome("unreachable", _("the mail server did not respond in time"))
_REFUSED = {
    aiosmtplib.SMTPAuthenticationError: "sign-in",
    aiosmtplib.SMTPSenderRefused: "sender",
    aiosmtplib.SMTPRecipientRefused: "recipient",
    aiosmtplib.SMTPDataError: "email",
}
_LOST_CONNECTION = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


class Undelivered(Exception):
    """Raised if an email could not be sent. `outcome` is the reason, without personal data."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.trouble)
        self.outcome = outcome


class SmtpSender:
    """A client for the configured mail server. It sends one email at a time.

    The server's certificate is verified, unless `security` is `none`: the connection is then not
    encrypted, and the server sends no certificate. The connection stays open between emails until
    `close` is called.
    """

    # Time limit in seconds for the steps before DATA.
    envelope_within = 60.0
    # Time limit in seconds for DATA. With a shorter limit, the box could give up shortly before the
    # server accepts the email, and would then send it a second time (RFC 5321, 4.5.3.2.6).
    data_within = 600.0

    def __init__(self, settings: MailSettings, tls: ssl.SSLContext | None = None) -> None:
        """Create a client. `tls` replaces the default TLS context."""
        self._settings, self._tls = settings, tls
        self._client: aiosmtplib.SMTP | None = None

    async def send(self, message: EmailMessage) -> None:
        """Send an email, and return when the server has accepted it.

        Raises Undelivered if the server does not accept it. If the calling task is cancelled, the
        connection is closed.
        """
        sender, recipient = message["From"].addresses[0], message["To"].addresses[0]
        raw = await asyncio.to_thread(message.as_bytes)
        try:
            with _smtp_errors():
                client = await self._open_envelope(sender, recipient)
                async with asyncio.timeout(self.data_within):
                    await client.data(raw)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Send QUIT and close the connection without waiting for the reply, which is not needed."""
        client, self._client = self._client, None
        if client is None:
            return
        with contextlib.suppress(aiosmtplib.SMTPException):
            if client.protocol is not None:
                client.protocol.write(b"QUIT\r\n")
        client.close()

    async def _open_envelope(
        self, sender: Address, recipient: Address | None = None
    ) -> aiosmtplib.SMTP:
        """Send the envelope, and return a connection that is ready for DATA.

        If the open connection fails, a new connection is used, because servers close idle
        connections and limit the number of emails per connection.
        """
        if self._client is not None:
            try:
                async with asyncio.timeout(self.envelope_within):
                    await _send_envelope(self._client, sender, recipient)
            except (aiosmtplib.SMTPException, OSError):
                self.close()
            else:
                return self._client
        client = self._client = _new_client(self._settings, sender.domain, self._tls)
        async with asyncio.timeout(self.envelope_within):
            await _connect(client)
            await _send_envelope(client, sender, recipient)
        return client


def start_message(
    sender: Address, recipient: Address, venue: str, subject: str, id_: str
) -> EmailMessage:
    """Return a message with its addresses and subject, encoded so that every mail server takes it.

    `venue` is shown as the sender's name. `id_` makes the Message-ID.
    """
    is_ascii = (sender.addr_spec + recipient.addr_spec).isascii()
    # Use unencoded UTF-8 in the headers only if an address requires it, because the mail server
    # must then support SMTPUTF8.
    message = EmailMessage(policy=_POLICY.clone(utf8=not is_ascii))
    message["From"] = Address(_display_name(venue), sender.username, sender.domain)
    message["To"] = recipient
    # Encoded here, because Python before 3.12.5 loses spaces where it folds a subject.
    message.set_raw("Subject", Header(subject, header_name="Subject").encode())
    message["Message-ID"] = f"<{id_}@{sender.domain}>"
    return message


def _display_name(venue: str) -> str:
    """Return the venue's name without address delimiters, cut to fit into one encoded word.

    The delimiters would need quotes, which Python before 3.12.5 loses when it folds a long name.
    """
    name = " ".join(_ADDRESS_DELIMITERS.sub(" ", venue).split())
    return name.encode()[:_DISPLAY_NAME_MAX].decode(errors="ignore").strip()


async def send_once(
    settings: MailSettings, recipient: str, venue: str, subject: str, text: str
) -> Outcome:
    """Try once to send an email that concerns no guest, and return the outcome within 15 s.

    Nothing is stored.
    """
    if not settings.host or not settings.sender:
        return _settings(_("the mail server or the sender is missing"))
    server = SmtpSender(settings)
    try:
        sender, to = (Address("", *split_address(each)) for each in (settings.sender, recipient))
        id_ = email.utils.make_msgid("once", sender.domain).strip("<>").partition("@")[0]
        message = start_message(sender, to, venue, subject, id_)
        message["Date"] = email.utils.localtime()
        message.set_content(text)
        async with asyncio.timeout(_ONCE_SECONDS):
            await server.send(message)
    except Undelivered as undelivered:
        return undelivered.outcome
    except TimeoutError:
        return _TOO_SLOW
    except (ValueError, IndexError):
        return Outcome("refused", "an address cannot be used")
    server.close()
    return Outcome("accepted")


def _new_client(settings: MailSettings, domain: str, tls: ssl.SSLContext | None) -> aiosmtplib.SMTP:
    """Return a client that is not connected yet.

    `domain` is sent with EHLO. Without `domain`, the library would look up this machine's name in
    the DNS.
    """
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
def _smtp_errors() -> Iterator[None]:
    """Convert SMTP, TLS, network and timeout errors to Undelivered errors."""
    try:
        yield
    except aiosmtplib.SMTPException as error:
        raise Undelivered(_classify(error)) from None
    except TimeoutError:
        raise Undelivered(_TOO_SLOW) from None
    except OSError as error:
        raise Undelivered(_unreachable(error)) from None


async def _connect(client: aiosmtplib.SMTP) -> None:
    try:
        await client.connect()
    except ssl.SSLError:  # must come first, because SSLCertVerificationError is also a ValueError
        raise
    except ValueError:
        raise Undelivered(_settings(_("the mail server or the sender cannot be used"))) from None


async def _send_envelope(
    client: aiosmtplib.SMTP, sender: Address, recipient: Address | None
) -> None:
    """Send MAIL FROM, and RCPT TO if there is a recipient.

    Unlike the library's `sendmail`, this sends no RSET if the server rejects one of the commands.
    Raises Undelivered if an address cannot be used.
    """
    needs_utf8 = not (sender.addr_spec + (recipient.addr_spec if recipient else "")).isascii()
    if needs_utf8 and client.is_ehlo_or_helo_needed:
        with contextlib.suppress(aiosmtplib.SMTPHeloError):
            await client.ehlo()
    if needs_utf8 and not client.supports_extension("smtputf8"):
        raise Undelivered(Outcome("refused", "the mail server does not support SMTPUTF8"))
    encoding, options = ("utf-8", ["SMTPUTF8"]) if needs_utf8 else ("ascii", [])
    try:
        await client.mail(sender.addr_spec, options=options, encoding=encoding)
        if recipient is not None:
            await client.rcpt(recipient.addr_spec, encoding=encoding)
    except ValueError:
        raise Undelivered(Outcome("refused", "an address cannot be used")) from None


def _classify(error: aiosmtplib.SMTPException) -> Outcome:
    """Return the outcome for an SMTP error.

    A 5xx reply means that this email cannot be sent, except if the reply concerns our sign-in, our
    sender address or our permission to send. In these cases, the owner must correct the settings.
    """
    if not isinstance(error, aiosmtplib.SMTPResponseException):
        if isinstance(error, OSError):
            return _unreachable(error)
        return _settings(_("the mail server does not support the configured security or sign-in"))
    code, permanent = _code(error), error.code >= _PERMANENT
    if permanent and (error.code in _AUTHENTICATION_REQUIRED or " 5.7." in code):
        return _settings(f"not allowed to send: {code}")
    refused = next((part for kind, part in _REFUSED.items() if isinstance(error, kind)), None)
    trouble = f"{refused} refused with {code}"
    if refused in {"sign-in", "sender"}:
        return _settings(trouble) if permanent else Outcome("unreachable", trouble)
    if refused is not None and error.code != _SHUTTING_DOWN:
        return Outcome("refused" if permanent else "deferred", trouble)
    return Outcome("unreachable", f"the mail server responded with {code}")


def _unreachable(error: BaseException) -> Outcome:
    """Return the outcome for a network error, depending on whether DNS or TLS caused it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return Outcome("unreachable", _HOST_UNKNOWN)
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, _LOST_CONNECTION):
            return _settings(f"no trusted TLS connection to the mail server ({cause.reason})")
        cause = cause.__cause__ or cause.__context__
    return Outcome("unreachable", _("the connection to the mail server failed or was lost"))


def _settings(trouble: str) -> Outcome:
    return Outcome("unreachable", SETTINGS_TROUBLE + trouble)


def _code(error: aiosmtplib.SMTPResponseException) -> str:
    """Return only the reply codes, such as `550 5.1.1`.

    The reply's text is left out, because it often contains the recipient's address.
    """
    enhanced = _ENHANCED_CODE.match(error.message)
    return f"{error.code} {enhanced[0]}" if enhanced else str(error.code)
