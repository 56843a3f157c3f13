"""The whole way of a code: from the guest's page through the camera to the partner's server."""

import io
import time
from dataclasses import replace

from PIL import Image

from appliance.actions.register_endpoint import register_endpoint
from appliance.store.readings import find_tonight
from tests.browser.door_world import door_world
from tests.browser.films import film_of
from tests.browser.phones import eventually
from tests.journeys.partner_side import Receiver


async def test_the_code_of_the_guests_page_is_scanned_and_the_partner_hears_of_it_signed(
    tmp_path, clock, settings, chromium, browser
):
    clock.milliseconds = round(time.time() * 1000)  # the partner refuses what is signed too early
    async with Receiver().running() as partner:
        webhooks = replace(
            settings.webhooks,
            allow_networks=(partner.authority,),
            allow_http=True,
            clock_grace_minutes=0,
        )
        settings = replace(settings, webhooks=webhooks)
        async with door_world(tmp_path, clock, settings, chromium) as door:
            database = door.environment.database
            _, partner.secrets["hook"] = await database.write(
                register_endpoint,
                door.environment.keyring,
                partner.url("hook"),
                ("reservation.checked_in",),
            )
            guest = await door.guest(date=(await database.read(find_tonight)).isoformat())
            picture = await the_guests_page(door, browser, guest)
            phone = await door.phone(video=film_of(tmp_path / "guest.mjpeg", picture))

            await phone.page.click("#start")
            await eventually(lambda: is_in(door, guest))
            heard = await partner.wait_for("reservation.checked_in", guest.id)

    assert heard.signature_held
    assert heard.reservation["checkedInAt"] is not None


async def the_guests_page(door, browser, guest):
    """What the guest holds up: the card with its code, as the browser paints it."""
    page = await browser.new_page(viewport={"width": 390, "height": 480}, device_scale_factor=1)
    token = door.environment.keyring.access_token(guest.id)
    await page.goto(f"{door.url}/access/{token}")
    return Image.open(io.BytesIO(await page.screenshot())).convert("RGB")


async def is_in(door, guest):
    return (await door.now_of(guest)).arrived == guest.guests
