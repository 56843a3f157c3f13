"""A test letter, and what came of it in words."""

from dataclasses import dataclass

from aiohttp import web

from appliance.i18n import Language
from appliance.mail.smtp import send_trial
from appliance.model.booking import is_email
from appliance.model.letter import SETTINGS_TROUBLE, Outcome
from appliance.settings import MailSettings
from appliance.store.venue import get_venue
from web.portal.answer import language_of
from web.portal.context import HOUSE


@dataclass(frozen=True, slots=True)
class Tried:
    """Whether the server took it; `detail` is what the server said, in numbers and English."""

    accepted: bool
    sentence: str
    detail: str | None


async def try_letter(request: web.Request, mail: MailSettings, recipient: str) -> Tried:
    """Send a test letter by `mail` to `recipient` now, and say what came of it."""
    language = language_of(request)
    venue = (await request[HOUSE].database.read(get_venue)).name
    outcome = Outcome("refused", "no address")
    if is_email(recipient):
        subject = language.gettext("Test letter from %(venue)s", venue=" ".join(venue.split()))
        text = language.gettext("This box can send letters. Nothing more to do.")
        outcome = await send_trial(mail, recipient, subject, text)
    return Tried(outcome.result == "accepted", _words(outcome, language), outcome.trouble)


def _words(outcome: Outcome, language: Language) -> str:
    _ = language.gettext
    if outcome.result == "accepted":
        return _("The mail server took the letter. Look into the mailbox, the spam folder too.")
    if outcome.result in {"refused", "deferred"}:
        return _("The mail server did not take the letter for this address.")
    if (outcome.trouble or "").startswith(SETTINGS_TROUBLE):
        return _("The mail server does not accept these settings.")
    return _("The mail server does not answer. Check its name, its port and the internet.")
