"""The door app reads codes from the camera, a USB scanner, the keyboard and a photo."""

import io

import pytest
from PIL import Image

from appliance.core.qr import qr_png
from tests.browser.accessibility import violations
from tests.browser.films import film
from tests.unit.door.test_keyboard_layouts import HOSTS, typed
from tests.waiting import until

CONTACT = ["BEGIN:VCARD", "N:Li", "END:VCARD"]
NO_WORKER = """() => {
  window.missing = true;
  window.workers = 0;
  const Made = Worker;
  window.Worker = class extends Made {
    constructor(url) {
      super(window.missing ? url.replace("reader.js", "no-reader.js") : url);
      window.workers += 1;
    }
  };
}"""
WITH_A_TORCH = """
  const { getUserMedia } = MediaDevices.prototype;
  MediaDevices.prototype.getUserMedia = async function (...wish) {
    const stream = await getUserMedia.apply(this, wish);
    [window.track] = stream.getVideoTracks();
    window.torch = false;
    track.getCapabilities = () => ({ torch: true });
    track.applyConstraints = async ({ advanced: [{ torch }] }) => void (window.torch = torch);
    return stream;
  };
"""
DENIED = """() => {
  const no = new DOMException("no", "NotAllowedError");
  navigator.mediaDevices.getUserMedia = () => Promise.reject(no);
}"""
OUT_OF_REACH = """ids => ids.filter((id) => {
  const there = document.getElementById(id);
  const { left, right, top, bottom } = there.getBoundingClientRect();
  const isIn = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
  const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return !isIn || !(there.contains(found) || found?.contains(there));
})"""


async def test_the_camera_admits_six_guests_after_one_tap_and_shows_each_verdict_once(
    door, tmp_path
):
    guests = [await door.guest(table=f"T{number}") for number in range(1, 7)]
    texts = [await door.pass_of(guest) for guest in guests]
    phone = await door.phone(video=film(tmp_path / "queue.mjpeg", texts, rest=60))
    shown = "[...document.querySelectorAll('#verdict')].map((v) => v.dataset.colour)"

    await phone.page.click("#start")
    await phone.page.wait_for_selector("#peek")

    async def everybody_is_in():
        return all([await door.are_in(guest, guest.guests) for guest in guests])

    await until(everybody_is_in, seconds=40)  # the film takes a few seconds and is repeated

    announced = await door.rows("SELECT type, count(*) FROM event GROUP BY type")
    assert dict(announced)["reservation.checked_in"] == len(guests)
    assert await phone.page.evaluate(shown) == ["green"]
    assert phone.complaints == []


async def test_a_qr_reader_that_does_not_load_is_reported_and_retried_with_pauses(door, tmp_path):
    guest = await door.guest()
    seen = film(tmp_path / "late.mjpeg", [await door.pass_of(guest)])
    phone = await door.phone(video=seen)
    page = phone.page
    await page.evaluate(NO_WORKER)

    await page.click("#start")
    await page.wait_for_selector("#misread")
    await page.wait_for_timeout(3000)
    tried = await page.evaluate("workers")
    await page.wait_for_function("() => workers >= 2")

    assert await violations(phone.page) == []
    assert await page.is_visible("#video")
    assert await page.is_hidden("#aim")
    assert tried <= 4
    await page.evaluate("missing = false")
    assert await phone.result() == "checked_in"
    await page.click("#next")
    assert await page.is_hidden("#misread")
    assert await page.is_visible("#aim")


async def test_camera_and_torch_are_on_again_after_the_lock_screen(door, tmp_path):
    text = await door.pass_of(await door.guest())
    seen = film(tmp_path / "late.mjpeg", [text], frames=30, blank=30)
    phone = await door.phone(video=seen, script=WITH_A_TORCH)
    page = phone.page
    await page.click("#start")
    await page.wait_for_selector("#torch:not([hidden])", state="attached")
    await page.evaluate("document.getElementById('torch').click()")  # a verdict may cover it
    await page.wait_for_function("() => window.torch")

    for state in ("hidden", "visible"):
        await page.evaluate(
            """(state) => {
              const now = { configurable: true, get: () => state };
              Object.defineProperty(document, "visibilityState", now);
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            state,
        )
        if state == "hidden":
            await page.wait_for_selector("#video[hidden]", state="attached")

    await page.wait_for_selector("#video:not([hidden])", state="attached")
    await page.wait_for_function("() => window.torch")
    assert await phone.result() in {"checked_in", "already_checked_in"}


@pytest.mark.parametrize("host", ["French", "Arabic, with Shift"])
async def test_a_usb_scanner_works_with_any_keyboard_layout(door, host):
    first, second = await door.guest(), await door.guest(table="T2")
    keys = [typed(await door.pass_of(guest), HOSTS[host]) for guest in (first, second)]
    phone = await door.phone()

    assert await phone.scan(keys[0]) == "checked_in"
    await phone.lose_box()
    assert await phone.scan(keys[1]) == "checked_in"


async def test_a_usb_scanner_works_with_any_focus_and_types_nothing_there(door):
    guest = await door.guest()
    phone = await door.phone()
    await phone.page.click("#open-list")
    await phone.page.fill("#query", "Sal")

    assert await phone.scan(await door.pass_of(guest)) == "checked_in"

    assert await phone.page.input_value("#query") == "Sal"
    assert await phone.page.is_visible("#verdict")


@pytest.mark.parametrize("lines", [["TABLE FOR TWO 2026"], CONTACT])
async def test_scanning_a_foreign_code_on_an_open_guest_sheet_admits_nobody(door, lines):
    guest = await door.guest()
    phone = await door.phone()
    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    await phone.page.focus("#guest-go")
    answered = "() => document.getElementById('verdict').dataset.result !== undefined"

    for line in lines:
        await phone.wedge(line)
    await phone.until(answered)
    await phone.scan("SOMETHING ELSE AGAIN")

    assert (await door.now_of(guest)).arrived == 0
    assert await door.rows("SELECT count(*) FROM scan_log WHERE admitted > 0") == [(0,)]


async def test_a_code_that_matches_two_guests_asks_which_one_and_a_tap_decides(door):
    await door.guest(access_code="SVC-B8DQ", customer_name="Youssef")
    second = await door.guest(table="T2", access_code="SVC-BBDQ", customer_name="Rim")
    phone = await door.phone()

    assert await phone.scan("SVC-8BDQ") == "ambiguous"
    await phone.page.click(".pick >> text=Rim")
    await phone.until("() => document.getElementById('verdict').dataset.result === 'checked_in'")

    assert (await door.now_of(second)).arrived == 2


async def test_if_the_camera_is_denied_the_page_explains_why_and_accepts_a_photo(door):
    guest = await door.guest()
    phone = await door.phone()
    await phone.page.evaluate(DENIED)
    await phone.page.click("#start")
    await phone.page.wait_for_selector("#ready[data-fault=refused]")

    code = Image.open(io.BytesIO(qr_png(await door.pass_of(guest), 8))).convert("RGB")
    photo = Image.new("RGB", (2400, 1800), (90, 80, 70))
    photo.paste(code.rotate(7, expand=True, fillcolor=(255, 255, 255)), (900, 600))
    file = io.BytesIO()
    photo.save(file, "JPEG")
    picked = {"name": "p.jpg", "mimeType": "image/jpeg", "buffer": file.getvalue()}
    await phone.page.set_input_files("#photo", picked)

    assert await phone.result() == "checked_in"


@pytest.mark.parametrize(
    ("width", "height", "locale"),
    [(360, 640, "ar-MA"), (844, 390, "fr-MA"), (640, 360, "fr-MA")],
)
async def test_on_a_small_phone_every_needed_control_is_visible_and_reachable(
    door, width, height, locale
):
    notes = "VIP, gâteau à 23 h, loin de la piste"
    green = await door.guest(guests=6, slot="20:00", notes=notes)
    amber = await door.guest(table="T2", status="pending", notes=notes)
    phone = await door.phone(viewport={"width": width, "height": height}, locale=locale)
    await phone.page.evaluate(DENIED)
    await phone.page.click("#start")
    await phone.page.wait_for_selector("#ready[data-fault=refused]")
    await phone.page.click("#photo-label", trial=True)

    assert await phone.scan(await door.pass_of(green)) == "checked_in"
    needed = ["shape", "verdict-word", "verdict-table", "verdict-sentence", "undo", "next"]
    assert await phone.page.evaluate(OUT_OF_REACH, needed) == []
    assert await phone.page.evaluate("document.documentElement.scrollWidth") == width

    assert await phone.scan(await door.pass_of(amber)) == "payment_due"
    assert await phone.page.evaluate(OUT_OF_REACH, ["override", "next"]) == []
    await phone.page.click("#override")
    assert await phone.page.evaluate(OUT_OF_REACH, ["reason", "next"]) == []
    await phone.page.fill("#reason", "Connu")
    await phone.page.click("#reason-form button")
    await phone.page.wait_for_selector("#verdict[data-result=checked_in]")
