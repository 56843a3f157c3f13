"""From /book on a phone to the letter, and from the letter back to the box: every kind of letter.

The real program, a real mail server, guests who open their letters in another browser than the one
in which they booked, and the host who answers them in the portal.
"""

import asyncio
import email
import email.policy
import io
import json
import re
from dataclasses import dataclass, field
from datetime import timedelta

import icalendar
import zxingcpp
from PIL import Image

from appliance.clock import SystemClock, newest_zone_database
from appliance.mail.composing import CATALOGUES
from appliance.model.letter import WITH_CALENDAR, WITH_PASS
from appliance.store.database import Database
from appliance.tokens import Tokens
from tests.appliance.mail.mail_servers import Handler, smtp_server, until
from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import PHONE, a_guests_page, picture
from tests.journeys.box_process import SLOTS, TABLE, VENUE, BoxProcess, found_box, venuebox
from tests.journeys.partner_side import calling

PASSWORD = "le thé est servi à minuit"
PATIENCE = 120_000  # milliseconds: a busy machine is no fault of the box
TABLES = 4
LONG_AGO = timedelta(days=5) // timedelta(milliseconds=1)
READ = """new Promise((sent) => {
  const [shown] = performance.getEntriesByType('navigation');
  setTimeout(sent, shown.responseStart + 2200 - performance.now());  // nobody types faster
})"""
URL = r"http://127\.0\.0\.1:\d+"


class Mailbox(Handler):
    """Every guest's letters, read as a mail program reads them."""

    async def letter(self, kind, guest):
        """The letter of that kind to this guest, once it has come; it is whole and well formed."""
        heading = CATALOGUES[guest.language].kinds[kind].heading
        found = []

        def has_come():
            found[:] = [one for one in map(parse, self.envelopes)
                        if one["To"] == guest.address and heading in plain(one)]  # fmt: skip
            return found

        await until(has_come)
        [one] = found
        check(one, kind, guest.language)
        return one


@dataclass
class Guest:
    """Somebody with a phone of their own."""

    name: str
    language: str
    locale: str
    page: object = field(repr=False)

    @property
    def address(self):
        return f"{self.name.lower()}@guests.example"


def parse(envelope):
    return email.message_from_bytes(envelope.content, policy=email.policy.default)


def plain(letter):
    return letter.get_body(("plain",)).get_content().replace("\r\n", "\n")


def link(letter, path):
    """The address in the letter that leads there; the HTML has the same."""
    [found] = re.findall(rf"^{URL}{path}$", plain(letter), re.MULTILINE)
    assert f'href="{found}"' in letter.get_body(("html",)).get_content()
    return found


def code_in(letter):
    """What a scanner reads off the letter's own picture; the attached one is the same."""
    shown, attached = [part for part in letter.walk() if part.get_content_type() == "image/png"]
    assert shown.get_content() == attached.get_content()
    return code_on(Image.open(io.BytesIO(shown.get_content())).convert("L"))


def code_on(image):
    [code] = zxingcpp.read_barcodes(image)
    return code.text


def check(letter, kind, language):
    """Well formed, in one language, with pass and calendar where they are due."""
    assert not letter.defects
    assert letter["Content-Language"] == language
    html = letter.get_body(("html",)).get_content()
    assert f'lang="{language}" dir="{"rtl" if language == "ar" else "ltr"}"' in html
    kinds = [part.get_content_type() for part in letter.walk()]
    assert kinds.count("image/png") == (2 if kind in WITH_PASS else 0)
    assert kinds.count("text/calendar") == (kind in WITH_CALENDAR)
    for part in letter.walk():
        if part.get_content_type() == "text/calendar":
            [event] = icalendar.Calendar.from_ical(part.get_content()).walk("VEVENT")
            assert event["STATUS"] == ("CANCELLED" if kind == "cancelled" else "CONFIRMED")
    assert (letter["List-Unsubscribe"] is not None) == (kind == "reminder")


@browser_fixture
async def mail():
    async with smtp_server(Mailbox()) as (port, mailbox):
        mailbox.port = port
        yield mailbox


async def test_every_letter_of_a_booking_made_on_a_phone_leads_where_it_says(
    tmp_path, mail, browser
):
    settings = {
        "VENUEBOX_MAIL_HOST": "127.0.0.1",
        "VENUEBOX_MAIL_PORT": str(mail.port),
        "VENUEBOX_MAIL_SECURITY": "none",
        "VENUEBOX_MAIL_SENDER": "tables@riad.example",
        "VENUEBOX_MAIL_REMINDER_HOURS": "0",
        "VENUEBOX_BOOKING_ENABLED": "true",
    }
    founded = found_box(tmp_path, TABLES)
    box = BoxProcess(founded.data, log=tmp_path / "box.log", settings=settings)
    phones = iter([("Yasmine", "fr", "fr-MA"), ("Grace", "en", "en-GB"), ("Salma", "ar", "ar-MA"),
                   ("Karim", "fr", "fr-MA")])  # fmt: skip

    async def a_guest():
        name, language, locale = next(phones)
        page = await a_guests_page(browser, PHONE, locale)
        page.set_default_timeout(PATIENCE)
        return Guest(name, language, locale, page)

    async def of(guest):
        """The path of this guest's reservation in the portal."""
        found = (await partner.must(200, "GET", "/v1/reservations"))["items"]
        [one] = [each for each in found if each["customerFirstName"] == guest.name]
        return f"{box.address}/portal/reservations/{one['id']}"

    with box:
        async with calling(box, founded, "live") as (partner, _):
            await confirmed_and_undone(await a_guest(), box, mail, browser)

            await run_as(founded.data, tmp_path, auto_confirm="false")
            host = await a_host(browser, founded.data, box)
            grace, salma = await a_guest(), await a_guest()
            for guest in (grace, salma):
                await book(guest, box)
                requested = await mail.letter("requested", guest)
                await guest.page.goto(link(requested, r"/access/[\w-]+"))
                assert await guest.page.locator(".chip[data-tone=wait]").count() == 1
            await host.goto(await of(grace))
            await host.click("form[action$='/accept'] button")
            accepted = await mail.letter("accepted", grace)
            await see_the_pass(browser, accepted, grace)
            await host.goto(await of(salma))
            await host.click("details.sure summary >> nth=0")
            await host.click("form[action$='/decline'] button")
            await mail.letter("declined", salma)

            await run_as(founded.data, tmp_path, reservation_mode='"prepaid"')
            karim = await a_guest()
            await book(karim, box)
            due = plain(await mail.letter("payment_due", karim))
            assert "500 MAD" in due
            await host.goto(await of(karim))
            await host.fill("form[action$='/payment'] [name=amount]", "500")
            await host.click("form[action$='/payment'] button")
            await see_the_pass(browser, await mail.letter("confirmation", karim), karim)
            await host.context.close()

        await asyncio.to_thread(box.stop)
        await backdate(founded.data)
        await reminded([grace, karim], box, mail, browser)

    assert len(mail.envelopes) == 10
    assert [e.rcpt_tos for e in mail.envelopes[-2:]] in (
        [[grace.address], [karim.address]], [[karim.address], [grace.address]],
    )  # fmt: skip


async def confirmed_and_undone(guest, box, mail, browser):
    """A table at once; the letter opens the pass anywhere; its other link gives the table back."""
    await book(guest, box)
    letter = await mail.letter("confirmation", guest)
    page = await see_the_pass(browser, letter, guest)
    await page.goto(link(letter, r"/claim-guest/[\w-]+/cancel"))
    await page.click("form button[type=submit]")
    await mail.letter("cancelled", guest)

    await page.goto(link(letter, r"/access/[\w-]+"))
    assert zxingcpp.read_barcodes(await picture(page)) == []
    assert "annulée" in await page.inner_text("h2.headline")
    assert page.complaints == guest.page.complaints == []
    await page.context.close()


async def reminded(guests, box, mail, browser):
    """The box starts again and reminds them; one of them wants no more of that."""
    box.settings["VENUEBOX_MAIL_REMINDER_HOURS"] = "96"
    await asyncio.to_thread(box.start)
    for guest in guests:
        await see_the_pass(browser, await mail.letter("reminder", guest), guest)
    page = guests[0].page
    letter = await mail.letter("reminder", guests[0])
    await page.goto(letter["List-Unsubscribe"].strip("<>"))
    await page.click("form button")
    await page.wait_for_selector("form button", state="detached")
    await asyncio.to_thread(box.stop)


async def book(guest, box):
    """Tomorrow at the first hour, as a guest does who reads before sending."""
    page = guest.page
    await page.goto(f"{box.address}/book")
    await page.click(".chip-button:nth-child(2)")
    await page.wait_for_selector(".chip-button:nth-child(2)[aria-current=date]")
    await page.fill("[name=name]", f"{guest.name} El Amrani")
    await page.fill("[name=email]", guest.address)
    await page.evaluate(READ)
    await page.click("[data-booking] button[type=submit]")
    await page.wait_for_url("**/book/*")


async def see_the_pass(browser, letter, guest):
    """Open the letter's link in another browser: it shows the code that the letter shows."""
    page = await a_guests_page(browser, PHONE, guest.locale)
    page.set_default_timeout(PATIENCE)
    await page.goto(link(letter, r"/access/[\w-]+"))
    await page.wait_for_selector("[data-pass]")
    assert await page.get_attribute("html", "lang") == guest.language
    assert code_on(await picture(page)) == code_in(letter)
    return page


async def a_host(browser, data, box):
    """The portal's page of a host who was invited just now."""
    who = ("--name", "Hind", "--role", "host", "--json")
    invited = await asyncio.to_thread(venuebox, "staff", "create", *who, data=data)
    page = await a_guests_page(browser, (1280, 800))
    page.set_default_timeout(PATIENCE)
    await page.goto(json.loads(invited)["signInUrl"])
    await page.fill("[name=password]", PASSWORD)
    await page.click("main form button")
    await page.goto(f"{box.address}/portal/sign-in")
    await page.fill("[name=name]", "Hind")
    await page.fill("[name=password]", PASSWORD)
    await page.click("main form button")
    await page.wait_for_url("**/portal/tonight*")
    return page


async def run_as(data, folder, **ways):
    """The venue takes bookings in another way, from the next one on."""
    file = folder / "venue.toml"
    lines = "".join(f"{name} = {value}\n" for name, value in ways.items())
    tables = "".join(TABLE.format(number=number) for number in range(1, TABLES + 1))
    file.write_text(VENUE + lines + tables + SLOTS, "utf-8")
    await asyncio.to_thread(venuebox, "venue", "apply", str(file), data=data)


async def backdate(data):
    """The guests of a box that is stopped have booked five days ago."""
    database = Database(data / "live.db", SystemClock(), Tokens(), newest_zone_database())
    await database.write(
        lambda tx: tx.execute(
            "UPDATE reservation SET created_at = created_at - :ago", {"ago": LONG_AGO}
        )
    )
    await database.close()
