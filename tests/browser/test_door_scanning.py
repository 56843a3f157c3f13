"""The door app reads: by camera, by USB scanner, by typing, by photo."""

import io

import pytest
from PIL import Image

from appliance.model.qr import qr_png
from tests.appliance.model.test_keyboard_layouts import (
    ARABIC,
    ARABIC_WITH_SHIFT,
    AZERTY,
    AZERTY_CAPS_LOCK,
    QWERTZ,
    typed,
)
from tests.browser.films import film
from tests.browser.phones import eventually

LAYOUTS = {
    "lower-case": {},
    "azerty": AZERTY,
    "azerty-caps-lock": {k: AZERTY.get(k, k).swapcase() for k in AZERTY} | AZERTY_CAPS_LOCK,
    "qwertz": QWERTZ,
    "arabic": ARABIC | {"B": "\ufefb"},
    "arabic-with-shift": ARABIC_WITH_SHIFT | {"T": "لإ", "G": "لأ", "B": "لآ"},
}


async def a_full_house(door):
    """Twenty parties at five tables, an hour each, and their codes."""
    guests = [
        await door.guest(
            table=f"T{table}", slot=f"{hour}:00", customer_name=f"Invité {hour}{table}"
        )
        for hour in (18, 19, 20, 21)
        for table in range(1, 6)
    ]
    return guests, [await door.pass_of(guest) for guest in guests]


async def test_the_camera_lets_twenty_guests_in_with_one_tap_for_all_and_each_is_announced_once(
    door, tmp_path
):
    guests, texts = await a_full_house(door)
    phone = await door.phone(video=film(tmp_path / "queue.mjpeg", texts, rest=150))
    shown = "[...document.querySelectorAll('#verdict')].map((v) => v.dataset.colour)"

    await phone.page.click("#start")
    await phone.page.wait_for_selector("#peek")
    await eventually(lambda: everybody_is_in(door, guests))

    announced = await door.rows("SELECT type, count(*) FROM event GROUP BY type")
    assert dict(announced)["reservation.checked_in"] == len(guests)
    assert await phone.page.evaluate(shown) == ["green"]
    assert phone.complaints == []


async def everybody_is_in(door, guests):
    return all([(await door.now_of(guest)).arrived == guest.guests for guest in guests])


async def test_a_code_that_stays_in_sight_is_decided_once(door, tmp_path):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone(video=film(tmp_path / "long.mjpeg", [text], frames=60, blank=0))

    await phone.page.click("#start")
    assert await phone.result() == "checked_in"
    await phone.page.wait_for_timeout(5000)

    assert await phone.page.is_visible("#strip")
    assert await door.rows("SELECT count(*) FROM scan") == [(1,)]


async def test_the_camera_comes_back_after_the_lock_screen(door, tmp_path):
    guest = await door.guest()
    text = await door.pass_of(guest)
    phone = await door.phone(video=film(tmp_path / "late.mjpeg", [text], frames=30, blank=30))
    await phone.page.click("#start")
    await phone.page.wait_for_selector("#video:not([hidden])", state="attached")

    for state in ("hidden", "visible"):
        await phone.page.evaluate(
            """(state) => {
              const now = { value: state, configurable: true };
              Object.defineProperty(document, "visibilityState", now);
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            state,
        )
        if state == "hidden":
            await phone.page.wait_for_selector("#video[hidden]", state="attached")

    await phone.page.wait_for_selector("#video:not([hidden])", state="attached")
    assert await phone.result() in {"checked_in", "already_checked_in"}


@pytest.mark.parametrize("reach", ["online", "apart"])
@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_usb_scanner_is_understood_on_any_keyboard_layout(door, layout, reach):
    guest = await door.guest()
    text = await door.pass_of(guest)
    keys = text.lower() if layout == "lower-case" else typed(text, LAYOUTS[layout])
    phone = await door.phone()
    if reach == "apart":
        await door.stop()
        await phone.page.evaluate("dispatchEvent(new Event('offline'))")
        await phone.is_down()

    assert await phone.scan(keys) == "checked_in"


async def test_a_usb_scanner_is_heard_wherever_the_focus_is_and_leaves_no_trace_there(door):
    guest = await door.guest()
    phone = await door.phone()
    await phone.page.click("#open-list")
    await phone.page.fill("#query", "Sal")

    assert await phone.scan(await door.pass_of(guest)) == "checked_in"

    assert await phone.page.input_value("#query") == "Sal"
    assert await phone.page.is_visible("#verdict")


async def test_a_code_is_typed_as_it_is_said(door):
    await door.guest(access_code="SVC-7K2M")
    phone = await door.phone()

    await phone.page.click("#open-code")
    await phone.page.fill("#code", "7k2m")
    await phone.page.click("#code-form button")

    assert await phone.result() == "checked_in"
    assert await phone.page.inner_text("#verdict-table") == "Terrasse 1"


async def test_a_code_that_fits_two_asks_which_and_the_tap_decides(door):
    await door.guest(access_code="SVC-B8DQ", customer_name="Youssef")
    second = await door.guest(table="T2", access_code="SVC-BBDQ", customer_name="Rim")
    phone = await door.phone()

    assert await phone.scan("SVC-8BDQ") == "ambiguous"
    await phone.page.click(".pick >> text=Rim")
    await phone.until("() => document.getElementById('verdict').dataset.result === 'checked_in'")

    assert (await door.now_of(second)).arrived == 2


async def test_where_the_camera_is_refused_the_page_says_why_and_a_photo_does(door):
    guest = await door.guest()
    phone = await door.phone()
    await phone.page.evaluate(
        """() => {
          const no = new DOMException("no", "NotAllowedError");
          navigator.mediaDevices.getUserMedia = () => Promise.reject(no);
        }"""
    )
    await phone.page.click("#start")
    assert "autorisée" in await phone.page.inner_text("#ready-title")

    code = Image.open(io.BytesIO(qr_png(await door.pass_of(guest), 8))).convert("RGB")
    photo = Image.new("RGB", (2400, 1800), (90, 80, 70))
    photo.paste(code.rotate(7, expand=True, fillcolor=(255, 255, 255)), (900, 600))
    file = io.BytesIO()
    photo.save(file, "JPEG")
    picked = {"name": "p.jpg", "mimeType": "image/jpeg", "buffer": file.getvalue()}
    await phone.page.set_input_files("#photo", picked)

    assert await phone.result() == "checked_in"


async def test_a_photo_without_a_code_says_what_to_do(door):
    phone = await door.phone()
    file = io.BytesIO()
    Image.new("RGB", (400, 300), (90, 80, 70)).save(file, "PNG")

    picked = {"name": "p.png", "mimeType": "image/png", "buffer": file.getvalue()}
    await phone.page.set_input_files("#photo", picked)

    await phone.page.wait_for_selector("#photo-problem:not([hidden])", state="attached")
