"""Render an email from the current reservation, not from its state when the email was queued.

`Composer.compose` is pure, and slow enough to need a thread.
"""

import asyncio
import contextlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from importlib import resources
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import jinja2
from babel.dates import format_date

from appliance.core.i18n import Language, load_languages
from appliance.core.i18n import mark as _
from appliance.core.qr import qr_png
from appliance.database.connection import Reader
from appliance.door.signing_keys import pass_text
from appliance.environment import Environment
from appliance.reservations.calendar_file import CalendarEntry, hours_of
from appliance.reservations.emails import (
    UNASKED,
    WITH_CALENDAR,
    WITH_PASS,
    Email,
    get_email,
    was_written_to,
)
from appliance.reservations.model import Reservation
from appliance.reservations.rows import get_reservation, sum_payments
from appliance.venue.model import Venue, evening_end
from appliance.venue.rows import find_table, get_venue, list_slots

_NO_SENDER = Address("", "letters", "venuebox.invalid")  # for previews while no sender is set
_PASS_SCALE = 10  # pixels per module; displayed at half size to stay sharp on every screen
_NOT_IN_ADDRESSES = re.compile(r"""[\s<>()\[\]\\,;:"'@\x00-\x1f\x7f-\x9f]""")
_PARTS_ADDRESSES = re.compile(r'[()<>\[\]:;@\\,"=?]')
_DISPLAY_NAME_MAX = 45  # bytes of UTF-8, which are 60 characters of Base64
_POLICY = SMTP.clone(cte_type="7bit")
_UNSEEN = {"Cc", "Cs", "Zl", "Zp"}
_TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # bidi overrides, isolates
_FIRST_NAME_MAX = 40


class Texts(NamedTuple):
    """Message ids of the texts of one kind of email."""

    subject: str
    heading: str
    intro: str


TEXTS: Mapping[str, Texts] = {
    "confirmation": Texts(
        _("Your reservation: %(venue)s, %(day)s"),
        _("Your reservation is confirmed"),
        _("%(venue)s is expecting you. Here is all you need for the evening."),
    ),
    "requested": Texts(
        _("Your request: %(venue)s, %(day)s"),
        _("Your request has arrived"),
        _(
            "%(venue)s will answer you soon in another message. Until then, the table is kept "
            "for you."
        ),
    ),
    "accepted": Texts(
        _("Request accepted: %(venue)s, %(day)s"),
        _("Your request is accepted"),
        _("%(venue)s is expecting you. Here is all you need for the evening."),
    ),
    "declined": Texts(
        _("Request declined: %(venue)s, %(day)s"),
        _("Your request could not be accepted"),
        _("We are sorry: %(venue)s could not take your request. Another evening may suit you."),
    ),
    "cancelled": Texts(
        _("Reservation cancelled: %(venue)s, %(day)s"),
        _("Your reservation is cancelled"),
        _(
            "The table has been freed, and your pass is no longer good. We would be glad to "
            "welcome you at %(venue)s another evening."
        ),
    ),
    "reminder": Texts(
        _("Reminder: %(venue)s, %(day)s"),
        _("See you soon"),
        _("%(venue)s is expecting you soon. Here again is all you need for the evening."),
    ),
    "payment_due": Texts(
        _("Payment due: %(venue)s, %(day)s"),
        _("Your payment is still due"),
        _(
            "The table is kept for you. The reservation is confirmed as soon as %(venue)s has "
            "received your payment."
        ),
    ),
}

# Reservation states in which each kind of email may still be sent.
_TRUE_OF = {
    "confirmation": {"confirmed", "completed", "pending", "partial", "requested"},
    "requested": {"requested"},
    "accepted": {"confirmed", "completed"},
    "declined": {"declined"},
    "cancelled": {"cancelled"},
    "reminder": {"confirmed"},
    "payment_due": {"pending", "partial"},
}


@dataclass(frozen=True, slots=True)
class Contents:
    """An email with all data needed to render it. `at` is its date, in ms since 1970.

    `hours` are minutes after midnight; None if the venue offers no slot that day. Amounts are
    whole currency units. `stop_url` is the unsubscribe link, for reminders only; `undo_url` is
    the cancellation link, for active reservations only.
    """

    letter: Email
    reservation: Reservation
    venue: Venue
    pass_text: str
    access_url: str
    undo_url: str | None
    stop_url: str | None
    zone: ZoneInfo
    hours: tuple[int, int] | None
    minimum_spend: int
    received: int
    at: int
    evening_is_over: bool
    was_written_to: bool

    @property
    def moot(self) -> str | None:
        """Why this email must no longer be sent; None if it may be sent."""
        if self.letter.recipient is None:
            return "the address was erased"
        if self.reservation.status not in _TRUE_OF[self.letter.kind]:
            return f"the reservation is {self.reservation.status}"
        if self.letter.kind == "cancelled" and not self.was_written_to:
            return "the guest was never told of this reservation"
        if self.evening_is_over:
            return "the evening is over"
        return None


class UnusableAddress(ValueError):
    """The text is not a usable email address."""


class Composer:
    """Renders the emails of one sender. Thread-safe."""

    def __init__(self, sender: str) -> None:
        """`sender` is the From address in the settings."""
        self._sender: Address | None = None
        with contextlib.suppress(UnusableAddress):
            self._sender = _address(sender)
        folder = resources.files("appliance.email").joinpath("templates")
        loader = jinja2.FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8"))
        self._templates = jinja2.Environment(
            loader=loader,
            autoescape=jinja2.select_autoescape(("html",), default=False),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    @property
    def has_sender(self) -> bool:
        """Whether the settings contain a usable sender address."""
        return self._sender is not None

    def compose(self, contents: Contents) -> EmailMessage:
        """Render the email: a text part, an HTML part and, if the guest is expected, the pass.

        The pass is an inline image in the HTML and also an attachment, for email clients that
        show no inline images. A calendar file is attached too.

        Without a sender, the result is a preview only. Raises UnusableAddress if the recipient's
        address is unusable.
        """
        language = load_languages().get(contents.letter.language)
        told = _tell(contents, language)
        sender, recipient = self._sender or _NO_SENDER, _address(contents.letter.recipient)
        foreign = not (sender.addr_spec + recipient.addr_spec).isascii()
        message = EmailMessage(policy=_POLICY.clone(utf8=foreign))  # raw UTF-8 needs SMTPUTF8
        message["Date"] = datetime.fromtimestamp(contents.at / 1000, UTC)
        message["From"] = Address(_display_name(told["venue"]), sender.username, sender.domain)
        message["To"] = recipient
        message["Subject"] = told["subject"]
        message["Message-ID"] = f"<{contents.letter.id}@{sender.domain}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(self._templates.get_template("letter.txt").render(told))
        message.add_alternative(
            self._templates.get_template("letter.html").render(told), subtype="html"
        )
        if contents.stop_url:
            message["List-Unsubscribe"] = f"<{contents.stop_url}>"
            if contents.stop_url.startswith("https:"):  # RFC 8058
                message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        if contents.letter.kind in WITH_PASS:
            _add_picture(message, contents, told["picture_id"])
        if contents.letter.kind in WITH_CALENDAR:
            _add_calendar(message, contents, told, language)
        message["Content-Language"] = language.code  # set last, else it would move into a part
        return message


async def render_email(environment: Environment, letter_id: str) -> EmailMessage:
    """Render an email in any state, as the guest receives it. Raises NotFound if unknown."""
    contents = await environment.database.read(read_contents, environment, letter_id)
    return await asyncio.to_thread(Composer(environment.settings.mail.sender).compose, contents)


def read_contents(reader: Reader, environment: Environment, letter_id: str) -> Contents:
    """Read the contents of an email. Raises NotFound if the id is unknown."""
    letter, venue, now = get_email(reader, letter_id), get_venue(reader), reader.now
    reservation = get_reservation(reader, letter.reservation_id)
    day, zone = date.fromisoformat(reservation.date), reader.zones.zone(venue.time_zone)
    links, keyring = environment.links, environment.keyring
    token = keyring.access_token(reservation.id)
    undo_url = links.undo(keyring.claim_token(reservation.id)) if reservation.holds else None
    table = find_table(reader, reservation.table_id)
    return Contents(
        letter=letter,
        reservation=reservation,
        venue=venue,
        pass_text=pass_text(reader, keyring, environment.name, reservation),
        access_url=links.access(token),
        undo_url=undo_url,
        stop_url=links.no_reminders(token) if letter.kind in UNASKED else None,
        zone=zone,
        hours=hours_of(reservation, tuple(list_slots(reader)), venue.evening_ends_at),
        minimum_spend=table.minimum_spend if table else 0,
        received=sum_payments(reader, reservation.id),
        at=now if letter.state == "waiting" else letter.sent_at or letter.created_at,
        evening_is_over=now >= evening_end(day, zone, venue.evening_ends_at),
        was_written_to=was_written_to(reader, reservation.id),
    )


def one_line(text: str) -> str:
    """Return `text` without line breaks, control characters and bidi controls.

    Prevents header and line injection by text that guests or owners typed. Also breaks up "=?":
    Python's header writer would decode an encoded word, including its line breaks.
    """
    kept = (" " if unicodedata.category(c) in _UNSEEN else c for c in text if c not in _TURNING)
    return " ".join("".join(kept).replace("=?", "= ?").split())


def name_to_greet(given_name: str | None) -> str | None:
    """Return the first name if it looks like one: a URL typed as a name must not become a link."""
    name = one_line(given_name or "")
    letters = all(unicodedata.category(c)[0] in "LM" or c in "-'’ʼ " for c in name)
    return name if name and letters and len(name) <= _FIRST_NAME_MAX else None


def _tell(contents: Contents, language: Language) -> dict[str, Any]:
    """Return all template values of the email, translated."""
    reservation, gettext = contents.reservation, language.gettext
    venue, code = one_line(contents.venue.name), reservation.access_code or ""
    kind, name = TEXTS[contents.letter.kind], name_to_greet(reservation.customer_given_name)
    day = format_date(date.fromisoformat(reservation.date), "EEEE d MMMM", language.locale)
    in_full = format_date(date.fromisoformat(reservation.date), "EEEE d MMMM y", language.locale)
    evening = gettext("%(day)s, the whole evening", day=in_full)
    if start := reservation.slot:
        end = f"{reservation.ends // 60 % 24:02d}:{reservation.ends % 60:02d}"
        evening = gettext("%(day)s, %(start)s to %(end)s", day=in_full, start=start, end=end)
    currency, amounts = one_line(contents.venue.currency), []
    if contents.letter.kind == "payment_due":
        amounts.append((gettext("Minimum of the table"), contents.minimum_spend))
        amounts.append((gettext("Received so far"), contents.received))
    return {
        "_": gettext,
        "language": language,
        "venue": venue,
        "code": code,
        "subject": language.plain(kind.subject, venue=venue, day=day),
        "heading": gettext(kind.heading),
        "intro": gettext(kind.intro, venue=venue),
        "greeting": gettext("Hello %(name)s,", name=name) if name else gettext("Hello,"),
        "evening": evening[:1].upper() + evening[1:],
        "table": one_line(reservation.table_name),
        "party": language.ngettext("%(count)s guest", "%(count)s guests", reservation.guests),
        "address": one_line(contents.venue.address or "") if reservation.holds else "",
        "way": contents.venue.way,
        "phone": contents.venue.phone,
        "amounts": [(label, f"{amount} {currency}") for label, amount in amounts if amount],
        "shows_pass": contents.letter.kind in WITH_PASS,
        "picture_id": f"pass.{contents.letter.id}@venuebox.invalid",
        "access_url": contents.access_url,
        "undo_url": contents.undo_url,
        "stop_url": contents.stop_url,
    }


def _add_picture(message: EmailMessage, contents: Contents, picture_id: str) -> None:
    picture = qr_png(contents.pass_text, _PASS_SCALE)
    _plain, html = message.iter_parts()
    html.add_related(
        picture, "image", "png", cid=f"<{picture_id}>", disposition="inline", filename="pass.png"
    )
    message.add_attachment(picture, "image", "png", filename="pass.png")


def _add_calendar(
    message: EmailMessage, contents: Contents, told: dict[str, Any], language: Language
) -> None:
    gettext = language.gettext
    code = gettext("%(field)s: %(rule)s", field=gettext("Your code"), rule=told["code"])
    lines = (told["table"], told["party"], code * contents.reservation.holds, contents.access_url)
    entry = CalendarEntry(
        reservation=contents.reservation,
        day=date.fromisoformat(contents.reservation.date),
        hours=contents.hours,
        zone=contents.zone,
        summary=gettext("Table at %(venue)s", venue=told["venue"]),
        location=", ".join(filter(None, (told["venue"], told["address"]))),
        description="\n".join(filter(None, lines)),
        url=contents.access_url,
    )
    message.add_attachment(
        entry.to_ics(), subtype="calendar", filename="reservation.ics", params={"method": "PUBLISH"}
    )


def _display_name(venue: str) -> str:
    """Return the venue's name without address delimiters, cut to fit one encoded word.

    Python before 3.12.5 loses the quotes around delimiters when it folds a long name.
    """
    name = " ".join(_PARTS_ADDRESSES.sub(" ", venue).split())
    return name.encode()[:_DISPLAY_NAME_MAX].decode(errors="ignore").strip()


def _address(text: str | None) -> Address:
    """Parse an address, with its domain in ASCII; None gives `erased@venuebox.invalid`."""
    username, at, domain = ("erased@venuebox.invalid" if text is None else text).rpartition("@")
    if not (username and at and domain) or _NOT_IN_ADDRESSES.search(username + domain):
        raise UnusableAddress
    try:
        return Address("", username, domain.encode("idna").decode("ascii"))
    except ValueError:
        raise UnusableAddress from None
