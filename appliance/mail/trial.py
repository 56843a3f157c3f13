"""A trial letter: whether a mail server takes our letters, before guests depend on it."""

import asyncio
import email.utils
from email.headerregistry import Address
from email.message import EmailMessage

from appliance.mail.smtp import SmtpSender, Undelivered
from appliance.model.letter import SETTINGS_TROUBLE, Outcome
from appliance.settings import MailSettings

TRIAL_WITHIN = 15.0  # seconds somebody waits for the answer


async def send_trial(settings: MailSettings, recipient: str, subject: str, text: str) -> Outcome:
    """Send one letter by these settings; what came of it, within 15 s. Nothing is kept."""
    if not settings.host or not settings.sender:
        return Outcome("unreachable", f"{SETTINGS_TROUBLE}mail.host or mail.sender is empty")
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
        return Outcome("unreachable", "the mail server did not answer in time")
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
