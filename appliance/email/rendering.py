"""Render emails.

An email shows the reservation as it is now, not as it was when the email was queued.
`read_contents` reads the data from the database. `Composer.compose` needs no database but is slow,
so call it in a thread.
"""

import asyncio
import contextlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import jinja2
from babel.dates import format_date

from appliance.core.email_addresses import split_address
from appliance.core.i18n import Language, load_languages
from appliance.core.qr import qr_png
from appliance.core.text import fold
from appliance.database.connection import Reader
from appliance.door.guest_pass import pass_text
from appliance.email.smtp import start_message
from appliance.environment import Environment
from appliance.reservations.calendar_file import calendar_file, calendar_method
from appliance.reservations.email_queue import (
    UNASKED,
    WITH_CALENDAR,
    WITH_PASS,
    Email,
    get_email,
    was_written_to,
)
from appliance.reservations.holds import get_seat
from appliance.reservations.model import (
    Reservation,
    cancel_deadline,
    evening_is_over,
    hours_of,
    start_date,
)
from appliance.reservations.rows import get_reservation, sum_payments
from appliance.venue.model import Venue, find_zone, get_venue, minute_of

# The sender in previews if no sender is set.
_NO_SENDER = Address("", "letters", "venuebox.invalid")
# Pixels per module of the QR code. Emails show the image at half its size, so that it is sharp on
# high-resolution screens too.
_PASS_SCALE = 10
_CONTROL_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
_BIDI_CONTROLS = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_FIRST_NAME_MAX = 40


# The reservation statuses in which each kind of email may be sent.
EMAIL_KINDS: Mapping[str, set[str]] = {
    "confirmation": {"confirmed", "completed"},
    "requested": {"requested"},
    "accepted": {"confirmed", "completed"},
    "declined": {"declined"},
    "cancelled": {"cancelled"},
    "changed": {"confirmed", "completed"},
    "reminder": {"confirmed"},
    "payment_due": {"pending", "partial"},
    "payment_reminder": {"pending", "partial"},
}


_VENUE_KINDS: Mapping[str, set[str]] = {
    "house_request": {"requested"},
    "house_cancelled": {"cancelled"},
    "house_changed": {"requested", "pending", "partial", "confirmed"},
    "house_payment": {"pending", "partial"},
}
_KINDS = {**EMAIL_KINDS, **_VENUE_KINDS}


@dataclass(frozen=True, slots=True)
class Contents:
    """An email and all data needed to render it. Amounts are in whole currency units.

    - `undo_url`: the cancellation link, or None if the guest cannot cancel any more.
    - `stop_url`: a reminder's unsubscribe link, or None for all other emails.
    - `hours`: the reservation's (start, end) in minutes after midnight, or None if it is for the
      whole of an evening without slots.
    - `at`: the email's date, in ms since 1970.
    - `moot`: why the email must no longer be sent, or None if it may be sent.
    """

    email: Email
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
    moot: str | None


class UnusableAddress(ValueError):
    """Raised if a text is not a valid email address, or if its domain has no ASCII form."""


class Composer:
    """Renders emails, all with the same sender. Thread-safe."""

    def __init__(self, sender: str) -> None:
        """Create a composer. `sender` is the From address in the settings.

        If `sender` is not a valid address, the emails can be previewed but must not be sent.
        """
        self.sender: Address | None = None
        with contextlib.suppress(UnusableAddress):
            self.sender = _parse_address(sender)
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=jinja2.select_autoescape(("html",), default=False),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def compose(self, contents: Contents) -> EmailMessage:
        """Render an email with a text part and an HTML part.

        Emails of the kinds WITH_PASS show the guest pass as an inline image. The same image is
        attached for email clients that show no inline images. Emails of the kinds WITH_CALENDAR
        have a calendar file attached.

        If there is no valid sender, the email has a placeholder address as its sender and is only a
        preview. Raises UnusableAddress if the recipient's address cannot be used.
        """
        language = load_languages().get(contents.email.language)
        values, kind = _template_values(contents, language), contents.email.kind
        subject = self._texts({**values, "_": language.plain})[kind][0]
        _, values["heading"], values["intro"] = self._texts(values)[kind]
        sender, recipient = self.sender or _NO_SENDER, _parse_address(contents.email.recipient)
        message = start_message(sender, recipient, values["venue"], subject, contents.email.id)
        message["Date"] = datetime.fromtimestamp(contents.at / 1000, UTC)
        message["Auto-Submitted"] = "auto-generated"
        text, html = (self._templates.get_template(f"email.{end}") for end in ("txt", "html"))
        message.set_content(text.render(values))
        message.add_alternative(html.render(values), subtype="html")
        if contents.stop_url:
            # Raw, because folding would encode a long URL, which email clients would not recognise.
            message.set_raw("List-Unsubscribe", f"<{contents.stop_url}>")
            if contents.stop_url.startswith("https:"):  # one-click unsubscribe (RFC 8058)
                message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        if kind in WITH_PASS:
            _add_picture(message, contents, values["picture_id"])
        if kind in WITH_CALENDAR:
            _add_calendar(message, contents, language)
        # Set this header last. Otherwise the library moves it into one of the parts.
        message["Content-Language"] = language.code
        return message

    def _texts(self, values: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
        """Return the subject, the heading and the first paragraph of each kind of email."""
        module = self._templates.get_template("texts.txt").make_module(values)
        texts: dict[str, tuple[str, str, str]] = vars(module)["texts"]
        return texts


async def render_email(environment: Environment, email_id: str) -> EmailMessage:
    """Render an email as the guest receives it, in any state of the queue.

    Raises NotFound if the id is unknown, and UnusableAddress if the recipient's address cannot
    be used.
    """
    contents = await environment.database.read(read_contents, environment, email_id)
    return await asyncio.to_thread(Composer(environment.settings.mail.sender).compose, contents)


def read_contents(reader: Reader, environment: Environment, email_id: str) -> Contents:
    """Return an email with the data needed to render it. Raises NotFound if the id is unknown."""
    email, venue, now = get_email(reader, email_id), get_venue(reader), reader.now
    reservation = get_reservation(reader, email.reservation_id)
    links, keyring = environment.links, environment.keyring
    token = keyring.access_token(reservation.id, reservation.link_generation)
    deadline = cancel_deadline(reader, reservation)
    is_for_venue = email.kind in _VENUE_KINDS
    may_cancel = reservation.holds and now < deadline and not is_for_venue
    undo_url = (
        links.undo(keyring.claim_token(reservation.id, reservation.link_generation))
        if may_cancel
        else None
    )
    return Contents(
        email=email,
        reservation=reservation,
        venue=venue,
        pass_text=pass_text(reader, keyring, environment.name, reservation),
        access_url=links.portal(reservation.id) if is_for_venue else links.access(token),
        undo_url=undo_url,
        stop_url=links.no_reminders(token) if email.kind in UNASKED else None,
        zone=find_zone(reader),
        hours=hours_of(reader, reservation),
        minimum_spend=get_seat(reader, reservation).minimum_spend,
        received=sum_payments(reader, reservation.id),
        at=now if email.state == "waiting" else email.sent_at or email.created_at,
        moot=_find_moot(reader, email, reservation),
    )


def _find_moot(reader: Reader, email: Email, reservation: Reservation) -> str | None:
    """Return why the email must no longer be sent, or None if it may be sent."""
    if email.recipient is None:
        return "the address was erased"
    if reservation.status not in _KINDS[email.kind]:
        return f"the reservation is {reservation.status}"
    if email.kind == "cancelled" and not was_written_to(reader, reservation.id):
        return "no email about this reservation was sent"
    if evening_is_over(reader, reservation):
        return "the evening is over"
    starts = minute_of(date.fromisoformat(reservation.date), reservation.starts, find_zone(reader))
    has_begun = reservation.slot and reader.now >= starts
    if email.kind == "reminder" and (has_begun or reservation.checked_in_at is not None):
        return "it is too late for a reminder"
    return None


def one_line(text: str) -> str:
    """Return `text` as one line, without control characters and bidi controls.

    This prevents text that guests or owners typed from injecting headers or lines. A space is
    inserted into "=?", which begins an encoded word (RFC 2047). Otherwise Python's header writer
    would decode the word, including any line breaks in it.
    """
    visible = (c for c in text if c not in _BIDI_CONTROLS)
    kept = (" " if unicodedata.category(c) in _CONTROL_CATEGORIES else c for c in visible)
    return " ".join("".join(kept).replace("=?", "= ?").split())


def name_to_greet(given_name: str | None) -> str | None:
    """Return the given name for the greeting, or None if it cannot be used.

    A name with characters other than letters, spaces, hyphens and apostrophes is not used, because
    it may be a URL. An empty name or a name with more than 40 characters is not used either.
    """
    name = one_line(given_name or "")
    letters = all(c.isalpha() or c in "-' " for c in fold(name))
    return name if name and letters and len(name) <= _FIRST_NAME_MAX else None


def _template_values(contents: Contents, language: Language) -> dict[str, Any]:
    """Return the values for the templates, with texts in `language`."""
    reservation, gettext = contents.reservation, language.gettext
    venue, code = one_line(contents.venue.name), reservation.access_code or ""
    name = name_to_greet(reservation.customer_given_name)
    date_ = start_date(reservation)
    day = format_date(date_, "EEEE d MMMM", language.locale)
    with_year = format_date(date_, "EEEE d MMMM y", language.locale)
    evening = gettext("%(day)s, the whole evening", day=with_year)
    if start := reservation.slot:
        end = f"{reservation.ends // 60 % 24:02d}:{reservation.ends % 60:02d}"
        evening = gettext("%(day)s, %(start)s to %(end)s", day=with_year, start=start, end=end)
    greeting = gettext("Hello %(name)s,", name=name) if name else gettext("Hello,")
    is_for_venue = contents.email.kind in _VENUE_KINDS
    if is_for_venue:
        contacts = (reservation.customer_name, reservation.customer_phone)
        greeting = " · ".join(one_line(each) for each in contacts if each)
    currency, amounts = one_line(contents.venue.currency), []
    due = max(0, contents.minimum_spend - contents.received)
    how = contents.venue.how_to_pay(due, code)
    is_to_be_paid = contents.email.kind in ("payment_due", "payment_reminder")
    if is_to_be_paid:
        amounts = [
            (gettext("Minimum spend"), contents.minimum_spend),
            (gettext("Received so far"), contents.received),
        ]
    return {
        "_": gettext,
        "language": language,
        "venue": venue,
        "code": code,
        "day": day,
        "greeting": greeting,
        "is_for_venue": is_for_venue,
        "evening": evening[:1].upper() + evening[1:],
        "table": one_line(reservation.table_name),
        "party": language.ngettext("%(count)s guest", "%(count)s guests", reservation.guests),
        "address": one_line(contents.venue.address or "") if reservation.holds else "",
        "way": contents.venue.way,
        "phone": contents.venue.phone,
        "words": one_line(contents.email.words or ""),
        "amounts": [(label, f"{amount} {currency}") for label, amount in amounts if amount],
        "how_to_pay": one_line(how or "") if is_to_be_paid else "",
        "pay_by": language.moment(reservation.expires_at, contents.zone)
        if is_to_be_paid and reservation.expires_at
        else "",
        "shows_pass": contents.email.kind in WITH_PASS,
        "picture_id": f"pass.{contents.email.id}@venuebox.invalid",
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


def _add_calendar(message: EmailMessage, contents: Contents, language: Language) -> None:
    file = calendar_file(
        contents.reservation, contents.venue, contents.hours, contents.zone, language,
        contents.access_url, organizer=message["From"].addresses[0].addr_spec,
    )  # fmt: skip
    method = calendar_method(contents.reservation)
    message.add_attachment(
        file, subtype="calendar", filename="reservation.ics", params={"method": method}
    )


def _parse_address(text: str | None) -> Address:
    """Return the address with its domain converted to ASCII.

    If `text` is None, the address was erased, so return `erased@venuebox.invalid`. Raises
    UnusableAddress if `text` is not a valid address.
    """
    try:
        return Address("", *split_address("erased@venuebox.invalid" if text is None else text))
    except ValueError:
        raise UnusableAddress from None
