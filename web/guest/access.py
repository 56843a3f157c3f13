"""The access page: card, guest pass and calendar file (interface, section 2.7)."""

import asyncio
import hashlib
import json
from functools import lru_cache

from aiohttp import web

from appliance.core.qr import qr_png, qr_svg
from appliance.http.request import ENVIRONMENT
from appliance.reservations.calendar_file import calendar_file
from web.guest.card import reservation_page
from web.guest.links import OpenedLink, open_link
from web.guest.responses import (
    LINK_ENDS,
    DeadLink,
    file_answer,
    guest_page,
    language_of,
    respond,
)
from web.rendering import STATIC_FILES, Html

_FILES = ("guest.css", "guest.js", "icon.svg")
_WORKER = "guest-service-worker.js"
# Makes a pass's QR code 784 pixels wide, enough to fill the width of a phone's screen.
_PIXELS_PER_MODULE = 16
# The QR codes of up to 1000 passes are cached, because phones request the same code repeatedly.
_svg, _png = lru_cache(1000)(qr_svg), lru_cache(1000)(qr_png)


@guest_page
async def access_page(request: web.Request) -> web.Response:
    """`GET /access/{token}`: show the reservation's card with the guest pass.

    While the page is open, it polls this URL with its `ETag` to detect changes.
    """
    opened = await open_link(request, "access")
    environment, language = request[ENVIRONMENT], language_of(request)
    etag = _etag(request, opened)
    if request.headers.get("If-None-Match") == etag:
        return respond({"ETag": etag}, status=304)
    image = None
    if opened.guest_pass is not None:
        image = Html(await asyncio.to_thread(_svg, opened.guest_pass))
    response = reservation_page(
        request,
        "guest/access.html",
        opened,
        pass_image=image,
        link=environment.links.access(opened.access_token),
        calendar=f"{opened.access_path}/calendar.ics?lang={language.code}",
        picture=f"{opened.access_path}/pass.png",
        worker=f"{environment.prefix}/access/service-worker.js",
        mark=etag,
    )
    response.headers["ETag"] = etag
    response.headers[LINK_ENDS] = str(opened.reservation.link_expires_at)
    return response


@guest_page
async def send_calendar(request: web.Request) -> web.Response:
    """`GET /access/{token}/calendar.ics`: return the reservation as a calendar file with one event.

    The event's SEQUENCE increases with each change. A booking for the whole evening lasts from the
    start of the weekday's first slot to the end of its last slot, or all day if there are no slots.
    """
    opened, language = await open_link(request, "access"), language_of(request)
    url = request[ENVIRONMENT].links.access(opened.access_token)
    file = calendar_file(opened.reservation, opened.venue, opened.hours, opened.zone, language, url)
    disposition = {"Content-Disposition": 'inline; filename="reservation.ics"'}
    return respond(disposition, text=file, content_type="text/calendar")


@guest_page
async def pass_picture(request: web.Request) -> web.Response:
    """`GET /access/{token}/pass.png`: download the pass as a QR code, without the guest's name."""
    opened = await open_link(request, "access")
    if opened.guest_pass is None:
        raise DeadLink
    picture = await asyncio.to_thread(_png, opened.guest_pass, _PIXELS_PER_MODULE)
    return file_answer(picture, "image/png", f"{opened.venue.slug}-{opened.reservation.date}.png")


async def service_worker(request: web.Request) -> web.Response:
    """`GET /access/service-worker.js`: return the script that stores opened cards on the phone."""
    environment, files = request[ENVIRONMENT], request.config_dict[STATIC_FILES]
    scope = f"{environment.prefix}/access/"
    shell = json.dumps({"name": f"venuebox-guest-{environment.name}", "scope": scope})
    text = f"self.shell={shell};\nimportScripts({json.dumps(files.url(_WORKER))});\n"
    headers = {"Cache-Control": "no-cache", "Service-Worker-Allowed": scope}
    return respond(headers, text=text, content_type="text/javascript")


def _etag(request: web.Request, opened: OpenedLink) -> str:
    """Return the page's ETag: a hash of everything that the page shows."""
    files = [request.config_dict[STATIC_FILES].url(name) for name in _FILES]
    shown = repr((opened, language_of(request).code, files))
    return f'"{hashlib.sha256(shown.encode()).hexdigest()[:24]}"'
