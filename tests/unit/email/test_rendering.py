import dataclasses
import email
import email.policy
import io
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from icalendar import Calendar
from msgspec import structs
from PIL import Image

from appliance.core.errors import NotFound
from appliance.core.qr import qr_png
from appliance.email.rendering import (
    EMAIL_KINDS,
    Composer,
    UnusableAddress,
    read_contents,
    render_email,
)
from appliance.reservations.email_queue import (
    LANGUAGES,
    WITH_CALENDAR,
    WITH_PASS,
    queue_email,
)
from tests.qr_codes import qr_codes
from tests.unit.email.conftest import GUEST, SENDER, a_reservation

HOSTILE = [
    "Riad\r\nBcc: victim@evil.example",
    "Riad\nSubject: won\n\n<script>alert(1)</script>",
    'Évil" <boss@bank.example>, "x',
    "É" * 90 + ", boss@bank.example, " + "é" * 90,
    "=?utf-8?q?=0D=0ABcc=3A_victim=40evil.example?=",
    "=?utf-8?b?DQpCY2M6?= é, < ?= =",
    "\u2028Bcc: x@evil.example\u202e",
    "<b>Riad</b> & {venue} {0} {{ 7*7 }} %s",
    "Riad\x00\x1b[31m",
]


def received(message):
    """Return the message as a receiver parses it."""
    return email.message_from_bytes(message.as_bytes(), policy=email.policy.default)


def parts(message):
    plain = message.get_body(("plain",)).get_content().replace("\r\n", "\n")
    html = message.get_body(("html",)).get_content()
    pictures = [p for p in message.walk() if p.get_content_maintype() == "image"]
    return plain, html, pictures


def with_changes(contents, **changes):
    """Return the contents with replaced fields, such as `venue__name=…`."""
    for path, value in changes.items():
        part, _, field = path.partition("__")
        inner = getattr(contents, part)
        change = dataclasses.replace if dataclasses.is_dataclass(inner) else structs.replace
        inner = change(inner, **{field: value})
        contents = dataclasses.replace(contents, **{part: inner})
    return contents


def check_one_email(message, benign):
    """Check that `message` has exactly the headers, addresses and elements of `benign`."""
    letter, usual = received(message), received(benign)
    assert letter.keys() == usual.keys()
    assert [a.addr_spec for a in letter["From"].addresses] == [SENDER]
    assert [a.addr_spec for a in letter["To"].addresses] == ["yasmine@guest.example"]
    assert not letter.defects
    head = message.as_bytes().split(b"\r\n\r\n")[0]
    names = [line.split(b":")[0] for line in head.split(b"\r\n") if line[:1] not in b" \t"]
    usual_head = benign.as_bytes().split(b"\r\n\r\n")[0]
    assert names == [
        line.split(b":")[0] for line in usual_head.split(b"\r\n") if line[:1] not in b" \t"
    ]
    assert elements(parts(letter)[1]) == elements(parts(usual)[1])
    assert parts(letter)[0].count("\n") == parts(usual)[0].count("\n")


def elements(html):
    found = []

    class Collector(HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.append((tag, [name for name, _ in attributes]))

    Collector().feed(html)
    return found


@pytest.fixture
async def contents(environment, an_email):
    email_id = await an_email(access_code="SVC-7K2M", starts=1170, ends=1320)
    return await environment.database.read(read_contents, environment, email_id)


async def test_the_qr_code_in_the_email_decodes_to_the_guest_pass(contents, monkeypatch):
    monkeypatch.setattr("appliance.email.rendering.qr_png", qr_png)
    letter = received(Composer(SENDER).compose(contents))

    _, html, pictures = parts(letter)
    picture, attached = pictures
    image = Image.open(io.BytesIO(picture.get_content())).convert("L")
    half = image.resize((image.width // 2, image.height // 2))
    assert len(contents.pass_text) == 139
    assert qr_codes(image) == qr_codes(half) == [contents.pass_text]
    assert f"cid:{picture['Content-ID'].strip('<>')}" in html
    assert picture.get_content_disposition() == "inline"
    assert attached.get_content_disposition() == "attachment"
    assert attached.get_filename() == "pass.png"
    assert attached.get_content() == picture.get_content()


async def test_the_headers_give_sender_recipient_and_date_and_mark_the_email_as_automatic(contents):
    letter = received(Composer(SENDER).compose(contents))

    (sender,) = letter["From"].addresses
    assert (sender.display_name, sender.addr_spec) == ("Riad Atlas", SENDER)
    assert letter["To"] == "yasmine@guest.example"
    assert letter["Date"].datetime.isoformat() == "2026-11-20T12:00:00+00:00"
    assert letter["Message-ID"] == f"<{contents.email.id}@riad.example>"
    assert letter["Auto-Submitted"] == "auto-generated"
    assert letter["MIME-Version"] == "1.0"
    raw = Composer(SENDER).compose(contents).as_bytes()
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert b"\n" not in raw.replace(b"\r\n", b"")


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch):
    """Replace the QR code by a constant, for speed."""
    monkeypatch.setattr("appliance.email.rendering.qr_png", lambda *_: b"\x89PNG")


async def test_the_email_loads_nothing_from_other_servers(contents):
    _, html, _ = parts(received(Composer(SENDER).compose(contents)))

    assert re.findall(r'src="([^"]*)"', html) == [f"cid:pass.{contents.email.id}@venuebox.invalid"]
    assert set(re.findall(r'href="([^"]*)"', html)) == {contents.access_url, contents.undo_url}
    assert "url(" not in html
    assert "@import" not in html


async def test_an_international_address_is_written_unencoded_with_its_domain_in_ascii(contents):
    changed = with_changes(contents, email__recipient="zoë@bücher.example")
    message = Composer(SENDER).compose(changed)

    assert message["To"].addresses[0].addr_spec == "zoë@xn--bcher-kva.example"
    assert "zoë@xn--bcher-kva.example".encode() in message.as_bytes()
    changed = with_changes(contents, email__recipient="zoe@bücher.example")
    assert Composer(SENDER).compose(changed).as_bytes().isascii()


@pytest.mark.parametrize(
    "address",
    ["x", "@x.example", "x@", "a b@x.example", "a@b@c", "a\r\nBcc: x@y.example", "a,b@c.example",
     "a@" + "b" * 64 + ".example", "<a@b.example>", 'a"b@c.example'],
)  # fmt: skip
async def test_an_email_to_an_unusable_address_is_not_composed(contents, address):
    with pytest.raises(UnusableAddress):
        Composer(SENDER).compose(with_changes(contents, email__recipient=address))
    assert Composer(address).sender is None


async def test_the_outbox_shows_an_email_even_if_no_sender_is_configured(at_port, an_email):
    environment = at_port(25, sender="")
    letter = await render_email(environment, await an_email())

    assert letter["From"].addresses[0].addr_spec == "letters@venuebox.invalid"
    with pytest.raises(NotFound):
        await render_email(environment, "018f0000-0000-7000-8000-00000000ffff")


STATUS = {"requested": "requested", "declined": "declined", "cancelled": "cancelled",
          "payment_due": "partial", "payment_reminder": "pending"}  # fmt: skip


@pytest.fixture
def contents_of(environment):
    """Return `contents_of("reminder", language="ar")`, which queues such an email and reads it."""

    async def read(kind, language="fr", **reservation):
        def queue(tx):
            status = STATUS.get(kind, "confirmed")
            values = {"access_code": "SVC-7K2M", "status": status} | reservation
            return queue_email(tx, a_reservation(tx, **values), kind, GUEST, language, keep=False)

        email_id = await environment.database.write(queue)
        return await environment.database.read(read_contents, environment, email_id)

    return read


def attachments(message):
    attached = (p for p in message.walk() if p.get_content_disposition() == "attachment")
    return {part.get_filename(): part for part in attached}


def the_event(message):
    attached = attachments(message)["reservation.ics"]
    assert attached.get_content_type() == "text/calendar"
    calendar = Calendar.from_ical(attached.get_content())
    (event,) = calendar.walk("VEVENT")
    assert not event.errors
    return event


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", EMAIL_KINDS)
async def test_each_email_contains_what_its_guest_needs_and_nothing_else(
    contents_of, kind, language
):
    contents = await contents_of(kind, language)

    letter = received(Composer(SENDER).compose(contents))

    plain, html, pictures = parts(letter)
    for text in (plain, html):
        assert contents.access_url in text
        assert "Terrasse 1" in text
        assert "Yasmine" in text
        assert ("SVC-7K2M" in text) == (kind in WITH_PASS)
    assert contents.access_url in plain.splitlines()  # nothing before it on its line
    direction = "rtl" if language == "ar" else "ltr"
    assert f'<html lang="{language}" dir="{direction}">' in html
    assert letter["Content-Language"] == language
    assert not letter.defects
    assert contents.moot is None or kind == "cancelled"
    assert "Riad Atlas" in letter["Subject"]
    assert "\N{NO-BREAK SPACE}" not in letter["Subject"]
    assert len(pictures) == (2 if kind in WITH_PASS else 0)
    expected = {"pass.png"} if kind in WITH_PASS else set()
    expected |= {"reservation.ics"} if kind in WITH_CALENDAR else set()
    assert set(attachments(letter)) == expected
    if kind in WITH_CALENDAR:
        assert the_event(letter)["UID"] == contents.reservation.id


@pytest.mark.parametrize(
    ("now", "is_offered"), [("2026-11-21T17:29:59Z", True), ("2026-11-21T17:30:00Z", False)]
)
async def test_a_guest_who_can_no_longer_cancel_gets_no_cancel_link(
    contents_of, clock, now, is_offered
):
    clock.set(now)
    letter = received(Composer(SENDER).compose(await contents_of("confirmation")))
    for text in parts(letter)[:2]:
        assert ("/cancel" in text) == is_offered


@pytest.mark.parametrize("kind", EMAIL_KINDS)
async def test_only_reminders_can_be_unsubscribed_from_with_one_click(contents_of, kind):
    contents = await contents_of(kind)

    sent = Composer(SENDER).compose(contents)
    letter = received(sent)

    if kind == "reminder":
        address = contents.access_url.replace("/access/", "/no-reminders/")
        assert f"\r\nList-Unsubscribe: <{address}>\r\n".encode() in sent.as_bytes()
        assert letter["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert address in parts(letter)[0]
    else:
        assert letter["List-Unsubscribe"] is None


@pytest.mark.parametrize("kind", EMAIL_KINDS)
@pytest.mark.parametrize("text", HOSTILE)
async def test_typed_text_cannot_inject_markup_or_headers_into_an_email(contents_of, kind, text):
    contents = await contents_of(kind)
    fields = ("customer_name", "notes", "table_name")
    hostile = with_changes(contents, **{f"reservation__{field}": text for field in fields})
    hostile = with_changes(hostile, venue__name=text, venue__currency=text)

    letter = Composer(SENDER).compose(hostile)

    check_one_email(letter, Composer(SENDER).compose(contents))
    if kind in WITH_CALENDAR:
        event = the_event(received(letter))
        usual = the_event(received(Composer(SENDER).compose(contents)))
        assert set(event) == set(usual)
        assert event["UID"] == usual["UID"]


@pytest.mark.parametrize(("kind", "method"), [("confirmation", "PUBLISH"), ("cancelled", "CANCEL")])
async def test_the_calendar_part_and_its_attachment_have_the_same_method(contents_of, kind, method):
    contents = with_changes(await contents_of(kind), venue__name='Café "L’Été"; Riad, & fils')

    letter = received(Composer(SENDER).compose(contents))

    part = attachments(letter)["reservation.ics"]
    calendar = Calendar.from_ical(part.get_content())
    assert (part["Content-Type"].params["method"], calendar["METHOD"]) == (method, method)
    organizer = the_event(letter)["ORGANIZER"]
    assert (organizer, organizer.params["CN"]) == (
        f"mailto:{SENDER}", "Café L’Été; Riad, & fils",
    )  # fmt: skip


async def test_the_calendar_file_has_the_start_in_the_time_zone_of_the_venue(contents_of, clock):
    clock.set("2026-09-01T12:00:00Z")
    contents = await contents_of("confirmation", date="2026-09-19")  # the last evening at +01

    event = the_event(received(Composer(SENDER).compose(contents)))

    assert event["DTSTART"].dt == datetime(2026, 9, 19, 18, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "status"),
    [("confirmation", "cancelled"), ("confirmation", "pending"), ("requested", "confirmed"),
     ("accepted", "cancelled"), ("declined", "confirmed"), ("cancelled", "confirmed"),
     ("reminder", "cancelled"), ("payment_due", "confirmed")],
)  # fmt: skip
async def test_an_outdated_email_is_not_sent(contents_of, kind, status):
    contents = await contents_of(kind, status=status)

    assert contents.moot == f"the reservation is {status}"
