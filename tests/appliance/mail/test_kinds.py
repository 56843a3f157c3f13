"""The seven letters: what each says and carries, in three languages, whatever was typed."""

import dataclasses
import io
from datetime import UTC, datetime

import pytest
import zxingcpp
from icalendar import Calendar
from PIL import Image

from appliance.actions.queue_letter import queue_letter
from appliance.mail.composing import CATALOGUES, Composer
from appliance.mail.contents import read_contents
from appliance.model.letter import KINDS, LANGUAGES, WITH_CALENDAR, WITH_PASS
from tests.appliance.mail.conftest import GUEST, SENDER, a_reservation
from tests.appliance.mail.reading import (
    HOSTILE,
    check_one_letter,
    parts,
    received,
    with_changes,
)

STATUS = {"requested": "requested", "declined": "declined", "cancelled": "cancelled",
          "payment_due": "partial"}  # fmt: skip


@pytest.fixture
def contents_of(environment):
    """What a letter of that kind tells: `await contents_of("reminder", language="ar")`."""

    async def read(kind, language="fr", **reservation):
        def queue(tx):
            status = STATUS.get(kind, "confirmed")
            values = {"access_code": "SVC-7K2M", "status": status} | reservation
            return queue_letter(tx, a_reservation(tx, **values), kind, GUEST, language, keep=False)

        letter_id = await environment.database.write(queue)
        return await environment.database.read(read_contents, environment, letter_id)

    return read


def attachments(message):
    attached = (p for p in message.walk() if p.get_content_disposition() == "attachment")
    return {part.get_filename(): part for part in attached}


def the_event(message):
    calendar = Calendar.from_ical(attachments(message)["reservation.ics"].get_content())
    (event,) = calendar.walk("VEVENT")
    assert not event.errors
    return event


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", KINDS)
async def test_each_letter_carries_what_its_guest_needs_and_no_more(contents_of, kind, language):
    contents = await contents_of(kind, language)

    letter = received(Composer(SENDER).compose(contents))

    words = CATALOGUES[language].kinds[kind]
    plain, html, pictures = parts(letter)
    for text in (plain, html):
        assert words.heading in text
        assert contents.access_url in text
        assert "Terrasse 1" in text
        assert ("SVC-7K2M" in text) == (kind in WITH_PASS)
    assert not letter.defects
    assert contents.moot is None or kind == "cancelled"
    assert letter["Subject"].startswith(words.subject.split("{")[0])
    assert len(pictures) == (2 if kind in WITH_PASS else 0)
    expected = {"pass.png"} if kind in WITH_PASS else set()
    expected |= {"reservation.ics"} if kind in WITH_CALENDAR else set()
    assert set(attachments(letter)) == expected
    for picture in pictures:
        image = Image.open(io.BytesIO(picture.get_content())).convert("L")
        assert [code.text for code in zxingcpp.read_barcodes(image)] == [contents.pass_text]


@pytest.mark.parametrize("kind", KINDS)
async def test_only_a_reminder_can_be_called_off_and_one_click_is_enough(contents_of, kind):
    contents = await contents_of(kind)

    letter = received(Composer(SENDER).compose(contents))

    if kind == "reminder":
        address = contents.access_url.replace("/access/", "/no-reminders/")
        assert letter["List-Unsubscribe"] == f"<{address}>"
        assert letter["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert address in parts(letter)[0]
    else:
        assert letter["List-Unsubscribe"] is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", HOSTILE)
async def test_no_letter_is_broken_open_by_what_was_typed(contents_of, kind, text):
    contents = await contents_of(kind)
    hostile = with_changes(
        contents,
        venue__name=text,
        venue__currency=text,
        reservation__customer_name=text,
        reservation__notes=text,
        reservation__table_name=text,
    )

    letter = Composer(SENDER).compose(hostile)

    check_one_letter(letter, Composer(SENDER).compose(contents))
    if kind in WITH_CALENDAR:
        event = the_event(received(letter))
        usual = the_event(received(Composer(SENDER).compose(contents)))
        assert set(event) == set(usual)
        assert event["UID"] == usual["UID"]


async def test_what_is_due_is_told_with_what_was_received(contents_of):
    contents = await contents_of("payment_due", "en")
    contents = dataclasses.replace(contents, received=200)

    plain, html, _ = parts(received(Composer(SENDER).compose(contents)))

    assert "Minimum of the table: 500 MAD\nReceived so far: 200 MAD\n" in plain
    assert "500 MAD" in html
    assert "200 MAD" in html


@pytest.mark.parametrize(
    ("day", "begins"),
    [
        # Morocco left UTC+01 for good on 20 September 2026.
        ("2026-09-19", datetime(2026, 9, 19, 18, 30, tzinfo=UTC)),
        ("2026-09-20", datetime(2026, 9, 20, 19, 30, tzinfo=UTC)),
        ("2027-07-01", datetime(2027, 7, 1, 19, 30, tzinfo=UTC)),
    ],
)
async def test_the_calendar_file_has_the_instant_by_the_rules_of_that_day(
    contents_of, clock, day, begins
):
    clock.set("2026-09-01T12:00:00Z")
    contents = await contents_of("confirmation", date=day)

    letter = received(Composer(SENDER).compose(contents))

    event = the_event(letter)
    assert event["DTSTART"].dt == begins
    assert (event["DTEND"].dt - event["DTSTART"].dt).seconds == 150 * 60
    assert event["STATUS"] == "CONFIRMED"
    assert event["UID"] == contents.reservation.id
    assert attachments(letter)["reservation.ics"].get_content_type() == "text/calendar"


async def test_a_cancellation_strikes_the_entry_out_of_the_calendar(contents_of):
    contents = await contents_of("cancelled", version=3)

    event = the_event(received(Composer(SENDER).compose(contents)))

    assert (event["STATUS"], event["SEQUENCE"]) == ("CANCELLED", 3)
    assert event["UID"] == contents.reservation.id


async def test_a_whole_evening_without_slots_is_an_all_day_entry(contents_of):
    contents = await contents_of("confirmation", slot=None, starts=0, ends=2880)

    event = the_event(received(Composer(SENDER).compose(contents)))

    assert event["DTSTART"].dt.isoformat() == "2026-11-21"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("confirmation", "cancelled"),
        ("requested", "confirmed"),
        ("accepted", "cancelled"),
        ("declined", "confirmed"),
        ("cancelled", "confirmed"),
        ("reminder", "cancelled"),
        ("payment_due", "confirmed"),
    ],
)
async def test_a_letter_that_is_no_longer_true_is_not_sent(contents_of, kind, status):
    contents = await contents_of(kind, status=status)

    assert contents.moot == f"the reservation is {status}"


async def test_nobody_is_told_that_something_they_never_heard_of_is_cancelled(contents_of):
    contents = await contents_of("cancelled")

    assert contents.moot == "the guest was never told of this reservation"
