"""The portal's box section in a browser, and the first start of an empty box."""

import re
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession

from appliance.backup.catalogue import Record, write_record
from appliance.release import UpdateRecord, write_update_record
from tests.app.portal.people import PASSWORD
from tests.app.processes import Serving
from tests.browser.accessibility import violations
from tests.browser.keyboard import enter_room, follow, is_within, press, reach, write
from tests.browser.phones import PHONE, Phone
from tests.browser.portal_world import DESK, TABLET
from tests.journeys.partner_side import Caller, Receiver
from tests.unit.email.mail_servers import smtp_server

PATIENCE = 120_000  # ms; long, because the machine may be busy


async def test_health_backups_and_mail_can_be_viewed_and_tested_by_keyboard(portal, tmp_path):
    last_night = Record(portal.box.clock.now(), "riad.tar.age", 35_489, 7)
    write_record(tmp_path, last_night)
    page = await portal.desk(role="manager", viewport=TABLET)
    await page.goto("/portal/tonight")

    await enter_room(page, "La box", "**/portal/box")
    await follow(page, "Vérifier de nouveau", "**/portal/box?again=1")
    await reach(page, page.locator("main details summary"))
    await page.keyboard.press("Enter")
    await page.locator(".checks .chip.good").first.wait_for()
    await follow(page, "Sauvegardes", "**/portal/box?tab=backups")
    told = await page.inner_text("main")
    await follow(page, "E-mail", "**/portal/box?tab=mail")
    await write(page, "recipient", "yasmine@example.com")
    await press(page, "Envoyer un e-mail de test")
    await page.locator("main .problem").wait_for()  # there is no mail server
    assert await violations(page) == []
    assert await is_within(page, TABLET["width"])

    assert "36\u202fko" in told
    assert portal.complaints == []


@pytest.mark.parametrize("proxy", [None, 502])
async def test_the_progress_of_an_update_is_shown_while_the_box_restarts(portal, tmp_path, proxy):
    """A proxy in front of the box responds while it restarts."""
    now = portal.box.clock.now()

    async def cut(route):
        await (route.fulfill(status=proxy, body="<h1>Bad gateway</h1>") if proxy else route.abort())

    write_update_record(tmp_path, UpdateRecord("start", now, "0.2.0"))
    page = await portal.desk(viewport=TABLET)
    await page.goto("/portal/box?tab=version")
    await page.locator("#update [role=status]").wait_for()
    assert await violations(page) == []
    await page.route("**/portal/box/update", cut)
    for _ in range(2):
        await page.wait_for_event("request", lambda request: request.url.endswith("/box/update"))
    assert await page.locator("#problem p").count() == 0  # the page says that the box may be away
    write_update_record(tmp_path, UpdateRecord("went_back", now, "0.2.0"))
    await page.unroute("**/portal/box/update")
    await page.locator("#update .warning").wait_for()
    assert await page.locator("#update [role=status]").count() == 0


async def test_an_empty_box_can_be_set_up_for_a_partners_booking_and_its_guests_arrival(
    tmp_path, chromium, browser
):
    async with (
        Receiver().running() as receiver,
        smtp_server() as (mail_port, mailbox),
        ClientSession() as session,
    ):
        arguments = ("--data", str(tmp_path / "box"), "--host", "127.0.0.1", "--port", "0")
        with Serving(*arguments, environ=receiver.settings) as box:
            async with at_a_desk(browser) as page:
                link = next(m[0] for line in box.lines if (m := re.search(r"http\S+#\S+", line)))
                await page.goto(link)
                await set_up_the_venue(page)
                await connect(page, mail_port)
                assert len(mailbox.envelopes) == 1
                await follow(page, "Premier téléphone", "**/portal/door", within="nav.setup")
                await write(page, "name", "Entrée", within="form[action$='/door/pair']")
                await press(page, "Montrer le code")
                pairing = await page.locator("#pairing-link").inner_text()

                async with a_phone(
                    chromium, box.address, tmp_path, pairing.partition("#pair=")[2]
                ) as phone:
                    partner = Caller(session, box, "live", await make_the_first_key(page))
                    await enter_room(page, "Ce soir", "**/portal/tonight")
                    evening = await page.locator("[data-board]").get_attribute("data-date")
                    booked = await book(partner, receiver, evening)
                    guest = page.locator(f'[data-reservation="{booked["serviceReservationId"]}"]')
                    await guest.first.wait_for()

                    async with session.get(booked["guestAccessUrl"]) as answer:
                        card = await answer.text()
                    guest_pass = re.search(r'data-pass="(\w+)"', card)[1]
                    assert await phone.scan(guest_pass) == "checked_in"

                    await page.locator(".guest.in").first.wait_for()
                    told = await receiver.wait_for(
                        "reservation.checked_in", booked["serviceReservationId"], seconds=120
                    )
                    assert phone.complaints == []
                [reservation] = (await partner.must(200, "GET", "/v1/reservations"))["items"]

    assert told.signature_held
    assert told.reservation["checkedInAt"] == reservation["checkedInAt"] is not None


async def set_up_the_venue(page):
    """Set up the owner, the venue, tables and slots."""
    await write(page, "name", "Yasmine")
    await write(page, "password", PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/portal/venue/rules#begin")
    assert await violations(page) == []
    await write(page, "name", "Riad Atlas")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/portal/venue/rules?note=saved")
    await follow(page, "Tables", "**/portal/venue", within="nav.setup")
    await write(page, "list", "T1-T12;;2;4")
    await press(page, "Prévisualiser la liste")
    await follow(page, "Ajouter 12 tables", "**/portal/venue?note=tables-added")
    await follow(page, "Horaires", "**/portal/venue/slots", within="nav.setup")
    for name, time in (("start", "19:30"), ("end", "22:00")):
        await page.locator(f"[name={name}]").fill(time)
    await follow(page, "Ajouter le créneau", "**/portal/venue/slots?note=saved")
    await follow(page, "E-mail", "**/portal/box?tab=mail", within="nav.setup")


async def connect(page, mail_port):
    """Set up the mail server, and send a test email."""
    await write(page, "host", "127.0.0.1")
    await write(page, "port", str(mail_port))
    await reach(page, page.locator("[name=security]"))
    await page.keyboard.type("aucun")
    await write(page, "sender", "riad@example.com")
    await follow(page, "Enregistrer les réglages de l’e-mail", "**/portal/box?tab=mail&note=saved")
    await write(page, "recipient", "yasmine@example.com")
    await press(page, "Envoyer un e-mail de test")
    await page.locator("main .note[role=alert]").wait_for()


async def make_the_first_key(page):
    """Create an API key with all scopes; return it."""
    await enter_room(page, "Intégrations et API", "**/portal/integrations")
    await follow(page, "Nouvelle clé", "**/portal/integrations/keys/new")
    await write(page, "name", "Conciergerie Marrakech")
    await press(page, "Créer la clé")
    return (await page.locator("#secret").inner_text()).strip()


async def book(partner, receiver, evening):
    """Register a webhook and book the first table for the whole evening."""
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


@asynccontextmanager
async def at_a_desk(browser):
    """A French desktop browser that must log no errors."""
    page = await browser.new_page(viewport=DESK, locale="fr-MA", reduced_motion="reduce")
    page.set_default_timeout(PATIENCE)
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    yield page
    assert complaints == []


@asynccontextmanager
async def a_phone(chromium, address, directory, secret):
    """Open another browser and pair it by the link of the QR code."""
    profile = directory / "phone"
    context = await chromium.launch_persistent(
        str(profile), [], viewport=PHONE, has_touch=True, locale="fr-MA"
    )
    context.set_default_timeout(PATIENCE)
    phone = Phone(address, "live", context, context.pages[0], profile, forget=lambda _: None)
    await phone.pair(secret)
    yield phone
    await context.close()
