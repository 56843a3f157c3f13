"""Check every page with axe and for horizontal scrolling, on phone and desktop, in each language.

Guest pages are also checked for text that is cut off at twice the size. Pages that only a form
leads to, such as recovery codes, are checked in the tests of their rooms. `/docs/reference` is not
checked: its markup is that of Swagger UI.
"""

import base64
import re
from datetime import date

import pytest

from appliance.checks.check import RELAY_AWAY, observe
from appliance.core.settings import MailSettings
from appliance.core.tokens import hash_token
from appliance.door.terminals import offer_pairing
from appliance.email.rendering import EMAIL_KINDS, Composer, read_contents
from appliance.outbox import announce
from appliance.privacy import ask_erasure
from appliance.reservations.email_queue import WITH_PASS, queue_email
from appliance.staff.accounts import begin_setup
from appliance.venue.edit import close_days
from appliance.webhooks.endpoints import register_endpoint
from tests.browser.accessibility import violations
from tests.browser.chromium import browser_fixture
from tests.browser.films import film
from tests.browser.guest_look import a_guests_page, picture
from tests.browser.keyboard import is_within
from tests.builders import a_key
from tests.conftest import set_rules, with_settings
from tests.qr_codes import qr_codes
from tests.unit.arrivals import add_reservation
from tests.unit.email import conftest as mail
from web.portal.routes import PORTAL_ROUTES

NARROW, DESK = {"width": 320, "height": 640}, {"width": 1280, "height": 800}
PHONE = {**NARROW, "width": 360}
LOOKS = pytest.mark.parametrize(
    ("language", "narrow", "wide"),  # the colour scheme of each size
    [("fr", "light", "dark"), ("ar", "dark", "light"), ("en", "dark", "light")],
)
LOCALES = {"fr": "fr-MA", "en": "en-GB", "ar": "ar-MA"}
CLOSED_DAY = "2026-11-25"
ROOMS = (
    "tonight", f"tonight?date={CLOSED_DAY}", "tonight/sheet", "tonight/figures", "reservations",
    "reservations?q=nobody", "reservations?from=2026-12-24&to=2026-12-01",
    "reservations/new?guests=99", f"reservations/new?date={CLOSED_DAY}",
    "reservations/new?date=2026-11-01", "venue", "venue/slots", "venue/closings", "venue/rules",
    "door", "door/log", "door/keys", "integrations", "integrations/keys/new",
    "integrations/endpoints/new", "integrations/deliveries",
    "integrations/warnings", "people", "people/log", "account", "box",
    "box?tab=backups", "box?tab=mail&provider=gmail", "box?tab=version",
    "box/address",
)  # fmt: skip
# GET routes that are not pages: fragments, feeds, downloads and redirects
NO_PAGES = {
    "/portal", "/portal/", "/portal/reservations/callers",
    "/portal/tonight/rows", "/portal/tonight/events",
    "/portal/reservations/export.csv", "/portal/reservations/{id}/held.json",
    "/portal/door/log/export", "/portal/box/backup", "/portal/box/update",
}  # fmt: skip
LONG = "Maximilienne-Alexandrine de La Rochefoucauld-Montmorency-Bouteville"
OPEN_ALL = "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"
REASONS = "document.getElementById('reasons').scrollIntoView({ block: 'end' })"
FONT_SIZE = "getComputedStyle(document.documentElement).fontSize"
# Texts cut off by elements with hidden overflow. Scrollable text is not cut off.
CUT = """() => {
  const cut = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { currentNode: text } = texts;
    const range = document.createRange();
    range.selectNodeContents(text);
    let box = text.parentElement;
    while (box && getComputedStyle(box).overflowX === "visible") box = box.parentElement;
    if (text.parentElement.closest(".trap")) continue;
    if (box && /auto|scroll/.test(getComputedStyle(box).overflowX)) continue;
    const { left, right, top, bottom } = box?.getBoundingClientRect() ??
      { left: 0, right: innerWidth, top: -Infinity, bottom: Infinity };
    const isOut = (rect) => rect.width > 0 && (rect.left < left - 1 || rect.right > right + 1 ||
      rect.top < top - 1 || rect.bottom > bottom + 1);
    if ([...range.getClientRects()].some(isOut)) cut.push(text.data.trim());
  }
  return cut;
}"""
# The forms in which Enter presses the first button, which is not the main one.
ENTER = """() => [...document.forms].filter((form) => {
  const controls = [...form.elements];
  const isField = (one) => one.matches("input:not([type=hidden], [type=file])") && !one.disabled;
  if (!controls.some(isField) || form.id === "switch") return false;
  const buttons = controls.filter((one) => one.type === "submit" || one.type === "image");
  const isQuiet = (one) => one.matches(".quiet-button, .light");
  return !buttons[0] || buttons[0].name || (isQuiet(buttons[0]) && !buttons.every(isQuiet));
}).map((form) => form.outerHTML)"""
STATUS = {"requested": "requested", "declined": "declined", "cancelled": "cancelled",
          "payment_due": "pending"}  # fmt: skip


@pytest.fixture
def settings():
    return with_settings(booking={"hourly_for_address": 100})


@browser_fixture(autouse=True)
async def booking_page(box):
    await set_rules(box.live, booking_page=1)


class Findings(dict):
    """The problems found, by page. `looks` are pairs of a size and a colour scheme."""

    def __init__(self, *looks):
        super().__init__()
        self._looks = looks

    async def look(self, page, name, *, opened=True, scroll="0"):
        """Find the problems of the open page. The script `scroll` runs before each check."""
        if opened:
            await page.evaluate(OPEN_ALL)
        found = []
        for size, scheme in self._looks:
            await page.set_viewport_size(size)
            await page.emulate_media(color_scheme=scheme)
            await page.evaluate(scroll)
            found += await self._problems(page)
        found += await page.evaluate(ENTER)
        if found:
            self[name] = found

    async def _problems(self, page):
        is_wide = not await is_within(page, page.viewport_size["width"])
        return [*await violations(page), *["wider than the screen"] * is_wide]

    async def visit(self, page, *paths):
        for path in paths:
            await page.goto(path)
            await self.look(page, path)


async def fill(box):
    """Fill the box with one of everything. Return the paths of its pages, and a reservation."""
    environment = box.environment
    asked = await box.guest(slot="19:30", vip=1, status="requested", notes="Gâteau à 23 h")
    await box.guest(slot=None, table="T2", arrived=1, customer_name=LONG, body_mismatches=1)
    late = await box.guest(slot="22:00", table="T3", late_at=1, status="pending", source="partner")
    paths = [f"reservations/{asked.id}", f"reservations/{late.id}"]
    await environment.database.write(ask_erasure, late.id)
    endpoint, _ = await environment.database.write(
        register_endpoint, environment.keyring,
        "https://pos.partner.example/hooks/venuebox/riad-atlas/7f3c9b21", ("reservation.created",),
    )  # fmt: skip
    await environment.database.write(announce, "reservation.created", asked.id)
    await environment.database.write(observe, RELAY_AWAY, "relay.example")
    await a_key(environment)
    await environment.database.write(begin_setup, closed=False)
    await environment.database.write(
        close_days, date.fromisoformat(CLOSED_DAY), date.fromisoformat(CLOSED_DAY), "Travaux"
    )
    offered = await environment.database.write(offer_pairing, "Porte 2")
    paths.append(f"door/pairings/{hash_token(offered.secret).hex()}")
    await box.phone("Entrée du jardin, côté de la rue des Bouchers")
    for table, room in (("venue_table", "venue/tables"), ("slot", "venue/slots"),
                        ("delivery", "integrations/deliveries"), ("api_key", "integrations/keys"),
                        ("terminal", "door/terminals")):  # fmt: skip
        [(row,), *_] = await box.rows(f"SELECT id FROM {table}")  # noqa: S608 - names above
        paths.append(f"{room}/{row}")
    paths.append(f"integrations/endpoints/{endpoint.id}")
    return paths, asked


@pytest.mark.slow(50)
@LOOKS
async def test_no_page_of_the_portal_has_an_accessibility_violation(portal, language, narrow, wide):
    box, found = portal.box, Findings((NARROW, narrow), (DESK, wide))
    paths, asked = await fill(box)
    stranger = await portal.stranger(language)
    await stranger.goto("/portal/setup")  # before there is an owner
    await found.look(stranger, "first setup")
    email_id = await box.other_environment.database.write(queue_test_email, language)
    page = await portal.desk(language=language, reduced_motion="reduce")

    visited = [f"/portal/{path}" for path in (*ROOMS, *paths)]
    assert unvisited(visited) == set()
    await found.visit(page, *visited, "/portal/unknown")
    await look_at_forms(page, found)
    await page.goto("/portal/tonight")
    await page.click(f"table [data-reservation='{asked.id}']")
    await page.wait_for_selector("#drawer [data-detail]")
    for summary in await page.query_selector_all("#drawer summary"):
        await summary.click()
    await found.look(page, "drawer", opened=False)
    await found.visit(
        stranger, "/portal/sign-in", "/portal/welcome", "/portal/setup", "/trust", "/", "/test",
        "/docs", "/docs/guide/door", "/test/docs/partners/guide", "/docs/reference/errors",
        "/test/outbox", f"/test/outbox/{email_id}",
    )  # fmt: skip

    assert found == {}
    assert portal.complaints == []


async def look_at_forms(page, found):
    """Check forms with a draft, with errors, and with a question before they are saved."""
    await page.goto("/portal/reservations/new")
    await page.fill("[name=customer_name]", LONG)
    await page.reload()
    await page.wait_for_selector(".draft")
    await page.evaluate("document.querySelector('[data-waiting]').hidden = false")
    await found.look(page, "draft")
    await page.evaluate("document.querySelector('form.sheet').noValidate = true")
    await page.fill("[name=customer_email]", "a@b")
    await page.click("form.sheet .buttons button")
    await page.wait_for_selector("[name=customer_email][aria-invalid]")
    await found.look(page, "refused")
    await page.goto("/portal/venue")
    for text in ("A1-A3;Salon;2;4", "X1;a;0;4000;bar;12,5"):
        await page.fill("textarea[name=list]", text)
        await page.click("form[action$=preview] button:not([type=button])")
        await page.wait_for_selector("#found-title" if ";Salon" in text else "#faults-title")
        await found.look(page, f"preview of {text}")


def unvisited(paths):
    """Return the portal's pages that none of the paths leads to."""
    pages = {route.path for route in PORTAL_ROUTES if route.method == "GET"} - NO_PAGES
    fixed = {path.partition("?")[0] for path in paths}
    patterns = {page: re.compile(re.sub(r"\{\w+\}", "[0-9a-f-]{30,}", page)) for page in pages}
    return {page for page in pages if not any(map(patterns[page].fullmatch, fixed))}


def queue_test_email(tx, language):
    reservation_id = add_reservation(tx).id
    return queue_email(tx, reservation_id, "confirmation", mail.GUEST, language, keep=True)


async def open_guest_pages(box, page):
    """Confirm a reservation on the page. Return the paths of all pages that links lead to."""
    box.clock.set("2026-11-21T12:00:00Z")
    keyring = box.environment.keyring
    coming = await box.guest(
        date="2026-11-22", access_code="SVC-MMMM", customer_name=LONG, slot="19:30"
    )
    requested = await box.guest(date="2026-11-23", status="requested", customer_name=LONG)
    cancelled = await box.guest(date="2026-11-24", status="cancelled")
    tokens = [keyring.access_token(one.id, 0) for one in (coming, requested, cancelled)]
    claims = [f"/claim-guest/{keyring.claim_token(one.id, 0)}" for one in (coming, requested)]
    await page.goto(claims[0])
    await page.click("form button")
    await page.wait_for_selector("main a.button[href*='/access/']")
    return (
        *(f"/access/{token}" for token in tokens), claims[1], f"{claims[0]}/cancel", "/me",
        f"/me/{coming.id}", f"/access/{tokens[0]}/change", "/book", "/book?date=2026-11-22",
        f"/no-reminders/{tokens[0]}", "/access/x",
    )  # fmt: skip


@pytest.mark.parametrize(("width", "how"), [(320, "setting"), (390, "style")])
async def test_no_text_on_a_guest_page_is_cut_off_at_twice_the_text_size(
    portal, chromium, tmp_path, width, how
):
    size = {"width": width, "height": 844}
    double = ["--blink-settings=defaultFontSize=32"] if how == "setting" else []
    context = await chromium.launch_persistent(
        str(tmp_path / "guest"), double, viewport=size, base_url=portal.box.url
    )
    page, found = context.pages[0], {}
    paths = (*await open_guest_pages(portal.box, page), "/", "/trust")
    for language in LOCALES:
        for path in paths:
            await page.goto(f"{path}{'&' if '?' in path else '?'}lang={language}")
            if how == "style":
                await page.evaluate("document.documentElement.style.fontSize = '200%'")
            assert await page.evaluate(FONT_SIZE) == "32px"
            await page.evaluate(OPEN_ALL)
            cut = await page.evaluate(CUT)
            if cut or not await is_within(page, width):
                found[f"{path} {language}"] = cut
    await context.close()

    assert found == {}


@LOOKS
async def test_no_guest_page_has_an_accessibility_violation(portal, language, narrow, wide):
    box, found = portal.box, Findings((NARROW, narrow), (DESK, wide))
    page = await portal.stranger(language)
    await found.visit(page, "/me")

    paths = await open_guest_pages(box, page)
    await found.look(page, "confirmed")
    await found.visit(page, *paths)
    for name in (" \N{ZERO WIDTH JOINER} ", "Youssef El Amrani"):
        await page.goto("/book")
        await page.fill("[name=name]", name)
        await page.fill("[name=email]", "youssef@example.org")
        box.clock.advance(20)
        await page.click("[data-booking] button[type=submit]")
        await page.wait_for_selector(".fault, .facts")
        await found.look(page, f"booked by {name}")

    assert page.url.split("?")[0].rpartition("/")[0].endswith("/book")
    assert found == {}
    assert portal.complaints == []


@LOOKS
async def test_no_screen_of_the_door_app_has_an_accessibility_violation(
    door, tmp_path, language, narrow, wide
):
    found = Findings((PHONE, narrow), (DESK, wide))
    texts = {
        "green": await door.pass_of(await door.guest(guests=4, notes="VIP: gâteau à 23 h")),
        "amber": await door.pass_of(await door.guest(table="T2", status="pending")),
        "red": await door.pass_of(await door.guest(table="T3", status="cancelled")),
    }
    stranger = await door.unpaired(locale=LOCALES[language])
    await stranger.open()
    await stranger.page.wait_for_selector("#pairing:not([hidden])")
    await found.look(stranger.page, "pairing")
    phone = await door.phone(
        locale=LOCALES[language], video=film(tmp_path / "wall.mjpeg", [], blank=30)
    )

    for opener in (None, "#open-code", "#open-list", "#open-menu"):
        if opener:
            await phone.page.click(opener)
        await found.look(phone.page, opener, opened=False)
        if opener == "#open-list":
            await phone.page.click("#guests button")
            await found.look(phone.page, "guest", opened=False)
            await phone.page.keyboard.press("Escape")
        if opener == "#open-menu":
            await phone.page.click("#unpair")
            await found.look(phone.page, "unpair", opened=False)
        await phone.page.keyboard.press("Escape")
    for colour, text in texts.items():
        await phone.scan(text)
        assert await phone.page.get_attribute("#verdict", "data-colour") == colour
        await found.look(phone.page, colour, opened=False)
        if await phone.page.is_visible("#override"):
            await phone.page.click("#override")
            await found.look(phone.page, "reasons", opened=False, scroll=REASONS)
            await phone.page.click("#next")
    await phone.page.click("#dock [data-recent]")
    await found.look(phone.page, "recent", opened=False)
    await phone.page.keyboard.press("Escape")
    await phone.page.click("#start")
    await phone.page.wait_for_selector("#video:not([hidden])", state="attached")
    await found.look(phone.page, "camera")

    assert found == {}
    assert phone.complaints == []


@browser_fixture
async def environment(tmp_path, clock):
    clock.set("2026-11-20T12:00:00Z")
    settings = MailSettings(host="mail.example", sender=mail.SENDER)
    opened = await mail.open_environment(tmp_path / "live.db", clock, settings)
    yield opened
    await opened.database.close()


async def email_of(environment, kind, language):
    """Return the email's text and its HTML with inlined pictures, as a mail program shows it."""
    day = f"2026-12-{[*EMAIL_KINDS].index(kind) + 1:02d}"

    def queue(tx):
        reservation_id = mail.a_reservation(tx, status=STATUS.get(kind, "confirmed"), date=day)
        return queue_email(tx, reservation_id, kind, mail.GUEST, language, keep=False)

    email_id = await environment.database.write(queue)
    contents = environment.database.peek(read_contents, environment, email_id)
    email = Composer(mail.SENDER).compose(contents)
    html = email.get_body(("html",)).get_content()
    for part in email.walk():
        if cid := (part["Content-ID"] or "").strip("<>"):
            data = base64.b64encode(part.get_content()).decode()
            html = html.replace(f"cid:{cid}", f"data:image/png;base64,{data}")
    return contents, html


@LOOKS
async def test_every_email_is_readable_and_its_pass_can_be_scanned_from_the_screen(
    environment, browser, language, narrow, wide
):
    found = Findings((DESK, wide), (PHONE, narrow))  # the picture is taken on the phone
    page = await a_guests_page(browser)
    for kind in EMAIL_KINDS:
        contents, html = await email_of(environment, kind, language)
        await page.set_content(html)

        await found.look(page, kind)
        image = await picture(page)
        half = image.resize((image.width // 2, image.height // 2))
        expected = [contents.pass_text] if kind in WITH_PASS else []
        for shown in (image, half):
            assert qr_codes(shown) == expected, kind

    assert found == {}
    assert [url for url in page.addresses if not url.startswith("data:")] == []
