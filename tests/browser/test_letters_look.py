"""Every letter as a mail program shows it: on a phone and a desk, light and dark, each language."""

import base64

import pytest
import zxingcpp

from appliance.mail.composing import CATALOGUES, Composer
from appliance.mail.contents import read_contents
from appliance.model.letter import KINDS, WITH_PASS
from tests.appliance.mail import conftest as mail
from tests.browser.accessibility import violations
from tests.browser.chromium import browser_fixture
from tests.browser.guest_look import DESKTOP, PHONE, a_guests_page, picture

STATUS = {"requested": "requested", "declined": "declined", "cancelled": "cancelled",
          "payment_due": "pending"}  # fmt: skip
LOOKS = [(PHONE, "light", "fr"), (PHONE, "dark", "ar"), (PHONE, "dark", "en"),
         (DESKTOP, "light", "ar"), (DESKTOP, "dark", "fr"), (DESKTOP, "light", "en")]  # fmt: skip


@browser_fixture
async def environment(tmp_path, clock):
    clock.set("2026-11-20T12:00:00Z")
    settings = mail.MailSettings(host="mail.example", sender=mail.SENDER)
    opened = await mail.open_environment(tmp_path / "live.db", clock, settings)
    await opened.database.write(
        lambda tx: tx.execute("UPDATE venue SET address = '12 derb El Ferrane, Marrakech'")
    )
    yield opened
    await opened.database.close()


async def letter_of(environment, kind, language):
    """What the letter tells, and the letter."""
    day = f"2026-12-{KINDS.index(kind) + 1:02d}"
    status = STATUS.get(kind, "confirmed")

    def queue(tx):
        reservation_id = mail.a_reservation(tx, status=status, date=day)
        return mail.queue_letter(tx, reservation_id, kind, mail.GUEST, language, keep=False)

    letter_id = await environment.database.write(queue)
    contents = environment.database.peek(read_contents, environment, letter_id)
    return contents, Composer(mail.SENDER).compose(contents)


def shown(letter, *, with_pictures=True):
    """The HTML with the pictures that it names in it, as a mail program puts them there."""
    html = letter.get_body(("html",)).get_content()
    for part in letter.walk():
        if with_pictures and part["Content-ID"]:
            data = base64.b64encode(part.get_content()).decode()
            cid = part["Content-ID"].strip("<>")
            assert f"cid:{cid}" in html
            html = html.replace(f"cid:{cid}", f"data:image/png;base64,{data}")
    return html


@pytest.mark.parametrize(("size", "scheme", "language"), LOOKS)
async def test_every_letter_is_readable_and_its_pass_can_be_scanned_from_the_screen(
    environment, browser, size, scheme, language
):
    page = await a_guests_page(browser, size, color_scheme=scheme)
    for kind in KINDS:
        contents, letter = await letter_of(environment, kind, language)

        await page.set_content(shown(letter))

        assert await violations(page) == [], kind
        assert await page.evaluate("document.documentElement.scrollWidth") <= size[0], kind
        image = await picture(page)
        half = image.resize((image.width // 2, image.height // 2))
        expected = [contents.pass_text] if kind in WITH_PASS else []
        assert [code.text for code in zxingcpp.read_barcodes(image)] == expected, kind
        assert [code.text for code in zxingcpp.read_barcodes(half)] == expected, kind
    assert [url for url in page.addresses if not url.startswith("data:")] == []


@pytest.mark.parametrize("language", CATALOGUES)
async def test_with_pictures_off_the_code_is_still_read_by_eye(environment, browser, language):
    contents, letter = await letter_of(environment, "confirmation", language)
    page = await a_guests_page(browser)

    await page.set_content(shown(letter, with_pictures=False).replace("cid:", "blocked:"))

    assert contents.reservation.access_code in await page.inner_text("body")
    assert contents.reservation.access_code in await page.get_attribute("img", "alt")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
