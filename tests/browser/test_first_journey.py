"""An empty directory, and an hour later the first guest of the first partner is in.

The real program, the house's browser, a phone in another browser, a partner who knows the
interface alone; the house uses its keyboard and nothing else.
"""

import re
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession

from tests.appliance.mail.mail_servers import smtp_server
from tests.browser.accessibility import violations
from tests.browser.keyboard import enter_room, follow, is_within, press, reach, write
from tests.browser.phones import PHONE, Phone
from tests.browser.portal_world import DESK, TABLET
from tests.journeys.partner_side import Caller, Receiver
from tests.web.processes import Serving

PASSWORD = "le thé est servi à minuit"
SIZES = {"desk": DESK, "tablet": TABLET}
PATIENCE = 120_000  # milliseconds: a busy machine is no fault of the box


@pytest.mark.parametrize("size", SIZES)
async def test_an_empty_box_is_set_up_a_partner_books_and_its_guest_comes_in(
    tmp_path, chromium, browser, size
):
    async with (
        Receiver().running() as receiver,
        smtp_server() as (mail_port, mailbox),
        ClientSession() as session,
    ):
        arguments = ("--data", str(tmp_path / "box"), "--host", "127.0.0.1", "--port", "0")
        with Serving(*arguments, environ=receiver.settings) as box:
            async with at_a_desk(browser, SIZES[size]) as page:
                link = next(m[0] for line in box.lines if (m := re.search(r"http\S+#\S+", line)))
                await page.goto(link)
                await look(page)
                await set_up_the_venue(page)
                await connect(page, mail_port, box.address)
                assert len(mailbox.envelopes) == 1
                secret = await pair_in_the_wizard(page)
                await follow(page, "Le téléphone est prêt : continuer", "**/portal/setup/ready*")
                await look(page)
                await let_the_settings_come_into_force(page)

                async with a_phone(chromium, box.address, tmp_path, secret) as phone:
                    partner = Caller(session, box, "live", await make_the_first_key(page))
                    await enter_room(page, "Ce soir", "**/portal/tonight")
                    booked = await book(partner, receiver, await evening_on(page))
                    guest = page.locator(f'[data-reservation="{booked["serviceReservationId"]}"]')
                    await guest.first.wait_for()
                    assert not await page.locator(".guest.in").count()

                    async with session.get(booked["guestAccessUrl"]) as answer:
                        card = await answer.text()
                    guest_pass = re.search(r'data-pass="(\w+)"', card)[1]
                    assert await phone.scan(guest_pass) == "checked_in"

                    await page.locator(".guest.in").first.wait_for()
                    await look(page)
                    told = await receiver.wait_for(
                        "reservation.checked_in", booked["serviceReservationId"], seconds=120
                    )
                    assert phone.complaints == []
                [reservation] = (await partner.must(200, "GET", "/v1/reservations"))["items"]

    assert told.signature_held
    assert told.reservation["externalRef"] == "table 12 of ours"
    assert told.reservation["checkedInAt"] == reservation["checkedInAt"] is not None


async def set_up_the_venue(page):
    """Owner, venue, tables, hours."""
    await write(page, "name", "Yasmine")
    await write(page, "password", PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/portal/setup/venue#begin")
    await look(page)
    await write(page, "name", "Riad Atlas")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/portal/setup/tables*")
    await write(page, "tables", "T1-T12, 2-4")
    await press(page, "Voir d’abord")
    await page.locator("table.ledger caption").wait_for()
    await look(page)
    await follow(page, "Les ajouter et continuer", "**/portal/setup/slots*")
    await look(page)
    await press(page, "Ajouter")
    await follow(page, "C’est tout : continuer", "**/portal/setup/mail*")
    await look(page)


async def connect(page, mail_port, address):
    """The mail server, with a letter to try it, and the address that guests use."""
    await write(page, "host", "127.0.0.1")
    await write(page, "port", str(mail_port))
    await reach(page, page.locator("[name=security]"))
    await page.keyboard.type("aucune")
    await write(page, "sender", "riad@example.com")
    await write(page, "recipient", "yasmine@example.com")
    await press(page, "Envoyer une lettre d’essai")
    await page.locator("main .note[role=alert]").wait_for()
    await look(page)
    await follow(page, "Enregistrer et continuer", "**/portal/setup/address*")
    await look(page)
    await write(page, "app_url", address)
    await follow(page, "Enregistrer et continuer", "**/portal/setup/phone*")
    await look(page)


async def let_the_settings_come_into_force(page):
    """The box begins anew, and whoever asks meanwhile waits for it."""
    await press(page, "Redémarrer maintenant : quelques secondes")
    await page.wait_for_url("**/portal/box?again=1")  # the page goes on by itself
    await page.locator(".lamp").wait_for()
    assert await page.get_by_text("Redémarrer maintenant").count() == 0


async def pair_in_the_wizard(page):
    """The secret of the link that stands beside the QR code."""
    await press(page, "Montrer le code")
    link = await page.locator(".pairing a").get_attribute("href")
    await look(page)
    return link.partition("#pair=")[2]


async def make_the_first_key(page):
    """A key with all rights, as the page shows it once."""
    await enter_room(page, "Intégrations et API", "**/portal/integrations")
    await look(page)
    await follow(page, "Nouvelle clé", "**/portal/integrations/keys/new")
    await write(page, "name", "Conciergerie Marrakech")
    await look(page)
    await press(page, "Créer la clé")
    key = await page.locator("#secret").inner_text()
    await look(page)
    return key.strip()


async def evening_on(page):
    """The date that the board shows."""
    await look(page)
    return await page.locator("[data-board]").get_attribute("data-date")


async def book(partner, receiver, evening):
    """The partner listens, and takes the first table for the whole evening."""
    hook = await partner.must(201, "POST", "/v1/webhooks", {"url": receiver.url("hook")})
    receiver.secrets["hook"] = hook["secret"]
    venue = await partner.must(200, "GET", "/v1/venue")
    return await partner.must(
        201,
        "POST",
        "/v1/reservations",
        {
            "tableId": venue["tables"][0]["id"],
            "date": evening,
            "guests": 3,
            "customer": {"name": "Salma Idrissi", "phone": "+212 600 000 001"},
            "externalRef": "table 12 of ours",
            "idempotencyKey": "the first of all",
        },
    )


async def look(page):
    """What is wrong with the page for those who use it otherwise, and for those with less room."""
    assert await violations(page) == [], page.url
    assert await is_within(page, page.viewport_size["width"]), page.url


@asynccontextmanager
async def at_a_desk(browser, size):
    """A French browser that complains of nothing."""
    page = await browser.new_page(viewport=size, locale="fr-MA", reduced_motion="reduce")
    page.set_default_timeout(PATIENCE)
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    yield page
    assert complaints == []


@asynccontextmanager
async def a_phone(chromium, address, directory, secret):
    """Another browser, which follows the link of the code and becomes a terminal."""
    profile = directory / "phone"
    context = await chromium.launch_persistent(
        str(profile), [], viewport=PHONE, has_touch=True, locale="fr-MA"
    )
    context.set_default_timeout(PATIENCE)
    phone = Phone(address, "live", context, context.pages[0], profile, forget=lambda _: None)
    await phone.pair(secret)
    yield phone
    await context.close()
