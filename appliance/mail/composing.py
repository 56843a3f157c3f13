"""Compose a letter: contents in, an `EmailMessage` out. Pure, and slow enough for a thread."""

import re
from datetime import UTC, date, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from importlib import resources
from typing import Any

import jinja2
from babel import Locale
from babel.dates import format_date

from appliance.mail.arabic import ARABIC
from appliance.mail.contents import Contents
from appliance.mail.english import ENGLISH
from appliance.mail.french import FRENCH
from appliance.mail.words import Words, name_to_greet, one_line
from appliance.model.calendar_entry import CalendarEntry
from appliance.model.letter import WITH_CALENDAR, WITH_PASS
from appliance.model.qr import qr_png

CATALOGUES = {words.language: words for words in (FRENCH, ENGLISH, ARABIC)}
_NO_SENDER = Address("", "letters", "venuebox.invalid")  # in the outbox, while none is set
_PASS_SCALE = 10  # pixels a module: shown at half size, so that it is sharp on every screen
_NOT_IN_ADDRESSES = re.compile(r"""[\s<>()\[\]\\,;:"'@\x00-\x1f\x7f-\x9f]""")
_PARTS_ADDRESSES = re.compile(r'[()<>\[\]:;@\\,"=?]')
_DISPLAY_NAME_MAX = 45  # bytes of UTF-8: 60 characters of Base64
_POLICY = SMTP.clone(cte_type="7bit")


class UnusableAddress(ValueError):
    """No letter can be addressed to this."""


class Composer:
    """Letters of one sender. Safe to use from several threads."""

    def __init__(self, sender: str) -> None:
        """`sender` is the From address of the settings."""
        try:
            self._sender: Address | None = _address(sender)
        except UnusableAddress:
            self._sender = None
        folder = resources.files("appliance.mail").joinpath("templates")
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
        """Whether the settings name a sender that letters can come from."""
        return self._sender is not None

    def compose(self, contents: Contents) -> EmailMessage:
        """The whole letter: a plain part, an HTML part and, where the guest is expected, the pass.

        The pass is in the HTML as an inline picture and attached, for readers that show none;
        a calendar file is attached too.

        Without a sender it can be looked at only. UnusableAddress when the recipient's is.
        """
        words = CATALOGUES[contents.letter.language]
        told = _tell(contents, words)
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
            _add_calendar(message, contents, told, words)
        message["Content-Language"] = words.language  # earlier, it would move into a part
        return message


def _tell(contents: Contents, words: Words) -> dict[str, Any]:
    """Every text of the letter, filled in."""
    reservation = contents.reservation
    venue, code = one_line(contents.venue.name), reservation.access_code or ""
    locale, day = Locale.parse(words.locale), date.fromisoformat(reservation.date)
    kind, name = words.kinds[contents.letter.kind], name_to_greet(reservation.customer_given_name)
    plural = words.party[locale.plural_form(reservation.guests)]
    in_full = format_date(day, "EEEE d MMMM y", locale=locale)
    address = one_line(contents.venue.address or "") if reservation.holds else ""
    evening = words.during if reservation.slot else words.whole_evening
    return {
        "words": words,
        "venue": venue,
        "code": code,
        "subject": kind.subject.format(
            venue=venue, day=format_date(day, "EEEE d MMMM", locale=locale)
        ),
        "heading": kind.heading,
        "intro": kind.intro.format(venue=venue),
        "greeting": words.greeting.format(name=name) if name else words.greeting_without_name,
        "evening": _capitalised(
            evening.format(day=in_full, start=reservation.slot, end=_clock_time(reservation.ends))
        ),
        "table": one_line(reservation.table_name),
        "party": plural.format(count=reservation.guests),
        "address": address,
        "way": contents.venue.way,
        "amounts": _amounts(contents, words),
        "shows_pass": contents.letter.kind in WITH_PASS,
        "picture": words.picture.format(code=code),
        "picture_id": f"pass.{contents.letter.id}@venuebox.invalid",
        "access_url": contents.access_url,
        "undo_url": contents.undo_url,
        "stop_url": contents.stop_url,
        "footer": words.footer.format(venue=venue),
    }


def _amounts(contents: Contents, words: Words) -> list[tuple[str, str]]:
    """What is to be paid, and what was: as `500 MAD`."""
    if contents.letter.kind != "payment_due":
        return []
    currency = one_line(contents.venue.currency)
    amounts = ((words.minimum_spend, contents.minimum_spend), (words.received, contents.received))
    return [(label, f"{amount} {currency}") for label, amount in amounts if amount]


def _add_picture(message: EmailMessage, contents: Contents, picture_id: str) -> None:
    picture = qr_png(contents.pass_text, _PASS_SCALE)
    _plain, html = message.iter_parts()
    html.add_related(
        picture, "image", "png", cid=f"<{picture_id}>", disposition="inline", filename="pass.png"
    )
    message.add_attachment(picture, "image", "png", filename="pass.png")


def _add_calendar(
    message: EmailMessage, contents: Contents, told: dict[str, Any], words: Words
) -> None:
    code = f"{words.code}{words.colon}{told['code']}" if contents.reservation.holds else ""
    entry = CalendarEntry(
        reservation=contents.reservation,
        day=date.fromisoformat(contents.reservation.date),
        hours=contents.hours,
        zone=contents.zone,
        summary=words.calendar_title.format(venue=told["venue"]),
        location=", ".join(filter(None, (told["venue"], told["address"]))),
        description="\n".join(
            filter(None, (told["table"], told["party"], code, contents.access_url))
        ),
        url=contents.access_url,
    )
    message.add_attachment(
        entry.to_ics(), subtype="calendar", filename="reservation.ics", params={"method": "PUBLISH"}
    )


def _display_name(venue: str) -> str:
    """The venue's name without the marks that part addresses, cut to fit one encoded word.

    Python before 3.12.5 loses the quotes of such marks where it folds a long name.
    """
    name = " ".join(_PARTS_ADDRESSES.sub(" ", venue).split())
    return name.encode()[:_DISPLAY_NAME_MAX].decode(errors="ignore").strip()


def _address(text: str | None) -> Address:
    """An address whose domain is spelled in ASCII; an erased one is `erased@venuebox.invalid`."""
    username, at, domain = ("erased@venuebox.invalid" if text is None else text).rpartition("@")
    if not (username and at and domain) or _NOT_IN_ADDRESSES.search(username + domain):
        raise UnusableAddress
    try:
        return Address("", username, domain.encode("idna").decode("ascii"))
    except ValueError:
        raise UnusableAddress from None


def _clock_time(minutes: int) -> str:
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


def _capitalised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
