"""The access page: the guest's card, the pass, the calendar file (interface, section 2.7)."""

import asyncio
import hashlib
import json
from functools import lru_cache
from typing import Any

from aiohttp import web
from markupsafe import Markup

from appliance.core.i18n import Language
from appliance.core.qr import qr_png, qr_svg
from appliance.core.tokens import Keyring
from appliance.reservations.calendar_file import CalendarEntry, hours_of
from web.guest.card import make_card
from web.guest.responses import (
    LINK_ENDS,
    DeadLink,
    OpenedLink,
    environment_of,
    file_answer,
    guest_page,
    language_of,
    open_link,
    page,
    respond,
)
from web.rendering import STATIC_FILES


def make_calendar(opened: OpenedLink, card: dict[str, Any], language: Language, url: str) -> str:
    """An `.ics` with one event; the same event with a higher SEQUENCE after each change.

    A whole evening runs from the first slot of that weekday to the end of the last, or is an
    all-day event at a venue without slots.
    """
    details = language.gettext("Access code: %(code)s", code=card["code"]) if card["code"] else ""
    return CalendarEntry(
        reservation=opened.reservation,
        day=opened.day,
        hours=hours_of(opened.reservation, opened.slots, opened.venue.evening_ends_at),
        zone=opened.zone,
        summary=language.gettext("Table at %(venue)s", venue=card["venue"]),
        location=", ".join(filter(None, (card["venue"], card["address"]))),
        description="\n".join(filter(None, (card["party"], details, url))),
        url=url,
    ).to_ics()


_FILES = ("guest.css", "guest.js", "icon.svg")
_WORKER = "guest-service-worker.js"
_PIXELS_A_MODULE = 16  # a picture of 784 pixels: sharp when it fills a phone
# Whoever has one link may ask for its picture as often as they like: it costs one drawing.
_svg, _png = lru_cache(1000)(qr_svg), lru_cache(1000)(qr_png)


@guest_page
async def access_page(request: web.Request) -> web.Response:
    """`GET /access/{token}`: the card. Looking at it changes nothing.

    A page that is open asks now and then whether it is still so, by its `ETag`.
    """
    opened = await open_link(request, Keyring.read_access_token)
    environment, token = environment_of(request), request.match_info["token"]
    language, mark = language_of(request), _mark(request, opened)
    if request.headers.get("If-None-Match") == mark:
        return respond({"ETag": mark}, status=304)
    image = None
    if opened.guest_pass is not None:
        image = Markup(await asyncio.to_thread(_svg, opened.guest_pass))  # noqa: S704 - our own drawing
    here = f"{environment.prefix}/access/{token}"
    values: dict[str, object] = {
        "card": make_card(opened, language),
        "guest_pass": opened.guest_pass,
        "pass_image": image,
        "link": environment.links.access(token),
        "calendar": f"{here}/calendar.ics?lang={language.code}",
        "picture": f"{here}/pass.png",
        "worker": f"{environment.prefix}/access/service-worker.js",
        "mark": mark,
    }
    response = page(request, "guest/access.html", values)
    response.headers["ETag"] = mark
    response.headers[LINK_ENDS] = str(opened.reservation.link_expires_at)
    return response


@guest_page
async def calendar_file(request: web.Request) -> web.Response:
    """`GET /access/{token}/calendar.ics`: the reservation for the guest's own calendar."""
    opened, language = await open_link(request, Keyring.read_access_token), language_of(request)
    url = environment_of(request).links.access(request.match_info["token"])
    return respond(
        {"Content-Disposition": 'inline; filename="reservation.ics"'},
        text=make_calendar(opened, make_card(opened, language), language, url),
        content_type="text/calendar",
    )


@guest_page
async def pass_picture(request: web.Request) -> web.Response:
    """`GET /access/{token}/pass.png`: the code as a picture to keep; the code and nobody's name."""
    opened = await open_link(request, Keyring.read_access_token)
    if opened.guest_pass is None:
        raise DeadLink
    picture = await asyncio.to_thread(_png, opened.guest_pass, _PIXELS_A_MODULE)
    return file_answer(picture, "image/png", f"{opened.venue.slug}-{opened.reservation.date}.png")


async def service_worker(request: web.Request) -> web.Response:
    """`GET /access/service-worker.js`: keeps the card of whoever opened it on their phone."""
    environment, files = environment_of(request), request.config_dict[STATIC_FILES]
    scope = f"{environment.prefix}/access/"
    shell = json.dumps({"name": f"venuebox-guest-{environment.name}", "scope": scope})
    text = f"self.shell={shell};\nimportScripts({json.dumps(files.url(_WORKER))});\n"
    headers = {"Cache-Control": "no-cache", "Service-Worker-Allowed": scope}
    return respond(headers, text=text, content_type="text/javascript")


def _mark(request: web.Request, opened: OpenedLink) -> str:
    """Another text whenever the page would be another."""
    files = [request.config_dict[STATIC_FILES].url(name) for name in _FILES]
    seen = repr((opened, language_of(request).code, files))
    return f'"{hashlib.sha256(seen.encode()).hexdigest()[:24]}"'
