"""The access page: the guest's card with the pass (interface, section 2.7, `guestAccessUrl`)."""

import hashlib
import json

from aiohttp import web
from markupsafe import Markup

from web.guest.answer import (
    LINK_ENDS,
    calendar_answer,
    dead_link,
    environment_of,
    file_answer,
    language_of,
    open_link,
    page,
    script,
    unchanged,
)
from web.guest.calendar import make_calendar
from web.guest.card import make_card
from web.guest.opened_link import OpenedLink
from web.pass_images import PASS_IMAGES
from web.static_files import STATIC_FILES

_FILES = ("guest.css", "guest.js", "icon.svg")
_WORKER = "guest-service-worker.js"
_PIXELS_A_MODULE = 16  # a picture of 784 pixels: sharp when it fills a phone


async def access_page(request: web.Request) -> web.Response:
    """`GET /access/{token}`: the card. Looking at it changes nothing.

    A page that is open asks now and then whether it is still so, by its `ETag`.
    """
    environment, token = environment_of(request), request.match_info["token"]
    opened = await open_link(request, environment.keyring.read_access_token(token))
    if opened is None:
        return dead_link(request)
    language = language_of(request)
    mark = _mark(request, opened)
    if request.headers.get("If-None-Match") == mark:
        return unchanged(mark)
    image = None
    if opened.guest_pass is not None:
        image = Markup(await request.config_dict[PASS_IMAGES].svg(opened.guest_pass))  # noqa: S704 - our own drawing
    here = f"{environment.prefix}/access/{token}"
    response = page(
        request,
        "guest/access.html",
        {
            "card": make_card(opened, language),
            "guest_pass": opened.guest_pass,
            "pass_image": image,
            "link": environment.links.access(token),
            "calendar": f"{here}/calendar.ics?lang={language.code}",
            "picture": f"{here}/pass.png",
            "worker": f"{environment.prefix}/access/service-worker.js",
            "mark": mark,
        },
    )
    response.headers["ETag"] = mark
    response.headers[LINK_ENDS] = str(opened.reservation.link_expires_at)
    return response


async def calendar_file(request: web.Request) -> web.Response:
    """`GET /access/{token}/calendar.ics`: the reservation for the guest's own calendar."""
    environment, token = environment_of(request), request.match_info["token"]
    opened = await open_link(request, environment.keyring.read_access_token(token))
    if opened is None:
        return dead_link(request)
    language = language_of(request)
    card = make_card(opened, language)
    return calendar_answer(make_calendar(opened, card, language, environment.links.access(token)))


async def pass_picture(request: web.Request) -> web.Response:
    """`GET /access/{token}/pass.png`: the code as a picture to keep; the code and nobody's name."""
    environment, token = environment_of(request), request.match_info["token"]
    opened = await open_link(request, environment.keyring.read_access_token(token))
    if opened is None or opened.guest_pass is None:
        return dead_link(request)
    images = request.config_dict[PASS_IMAGES]
    picture = await images.png(opened.guest_pass, _PIXELS_A_MODULE)
    return file_answer(picture, "image/png", f"{opened.venue.slug}-{opened.reservation.date}.png")


async def service_worker(request: web.Request) -> web.Response:
    """`GET /access/service-worker.js`: keeps the card of whoever opened it on their phone."""
    environment, files = environment_of(request), request.config_dict[STATIC_FILES]
    scope = f"{environment.prefix}/access/"
    shell = json.dumps({"name": f"venuebox-guest-{environment.name}", "scope": scope})
    text = f"self.shell={shell};\nimportScripts({json.dumps(files.url(_WORKER))});\n"
    return script(text, {"Service-Worker-Allowed": scope})


def _mark(request: web.Request, opened: OpenedLink) -> str:
    """Another text whenever the page would be another."""
    files = [request.config_dict[STATIC_FILES].url(name) for name in _FILES]
    seen = repr((opened, language_of(request).code, files))
    return f'"{hashlib.sha256(seen.encode()).hexdigest()[:24]}"'
