"""The access page: the guest's card with the pass (contract section 2.7, `guestAccessUrl`)."""

from aiohttp import web
from markupsafe import Markup

from web.guest.answer import (
    calendar_answer,
    dead_link,
    environment_of,
    language_of,
    open_link,
    page,
)
from web.guest.calendar import make_calendar
from web.guest.card import make_card
from web.pass_images import PASS_IMAGES


async def access_page(request: web.Request) -> web.Response:
    """`GET /access/{token}`: the card. Looking at it changes nothing."""
    environment, token = environment_of(request), request.match_info["token"]
    opened = await open_link(environment, environment.keyring.read_access_token(token))
    if opened is None:
        return dead_link(request)
    language = language_of(request)
    image = None
    if opened.guest_pass is not None:
        image = Markup(await request.config_dict[PASS_IMAGES].svg(opened.guest_pass))  # noqa: S704 - our own drawing
    return page(
        request,
        "guest/access.html",
        {
            "card": make_card(opened, language),
            "guest_pass": opened.guest_pass,
            "pass_image": image,
            "link": environment.links.access(token),
            "calendar": f"{environment.prefix}/access/{token}/calendar.ics?lang={language.code}",
        },
    )


async def calendar_file(request: web.Request) -> web.Response:
    """`GET /access/{token}/calendar.ics`: the reservation for the guest's own calendar."""
    environment, token = environment_of(request), request.match_info["token"]
    opened = await open_link(environment, environment.keyring.read_access_token(token))
    if opened is None:
        return dead_link(request)
    language = language_of(request)
    card = make_card(opened, language)
    return calendar_answer(make_calendar(opened, card, language, environment.links.access(token)))
