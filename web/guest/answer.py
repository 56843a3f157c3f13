"""What every answer to a guest has in common: headers, and the one page for a dead link."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from aiohttp import web

from appliance.environment import Environment
from appliance.errors import RateLimited
from appliance.i18n import Language
from appliance.tokens import Keyring
from terminal_bridge.context import ENVIRONMENT
from terminal_bridge.same_origin import is_from_our_page
from web.guest.desk import desk_of
from web.guest.opened_link import OpenedLink, find_opened
from web.middleware import Handler
from web.rendering import LANGUAGES, page_headers, render

_HEADERS = page_headers()
# Until when a phone may keep a card (ms since 1970). A page that kept one takes only answers with
# this header for ours: what a tunnel or a captive portal says in our place has none.
LINK_ENDS = "Venuebox-Link-Ends"
_PARTNERS_CHOICE: web.RequestKey[str | None] = web.RequestKey("partners_choice")


class DeadLink(Exception):
    """A link or an address opens nothing: unknown and expired ones are alike."""


def guest_page(handler: Handler) -> Handler:
    """Give a dead link its page, and so a tap from another site's page, and too many taps."""

    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            if request.method == "POST":
                if not is_from_our_page(request, request[ENVIRONMENT].links.base):
                    return page(request, "guest/elsewhere.html", {}, status=403)
                desk_of(request).count_tap(request)
            return await handler(request)
        except DeadLink:
            return dead_link(request)
        except RateLimited:  # in a minute it goes on
            response = page(request, "guest/slow_down.html", {}, status=429)
            response.headers["Retry-After"] = "60"
            return response

    return handle


async def open_link(
    request: web.Request, read_token: Callable[[Keyring, str], str | None]
) -> OpenedLink:
    """What the link opens whose token the path has; DeadLink when that is nothing.

    One that this box never made costs no look into the database. The language that a partner
    gave for its customer becomes that of the request.
    """
    environment = environment_of(request)
    reservation_id = read_token(environment.keyring, request.match_info["token"])
    if reservation_id is None:
        raise DeadLink
    opened = await environment.database.read(find_opened, environment, reservation_id)
    if opened is None:
        raise DeadLink
    if opened.reservation.source == "partner":
        request[_PARTNERS_CHOICE] = opened.reservation.language
    return opened


def page(
    request: web.Request, template: str, values: dict[str, object], status: int = 200
) -> web.Response:
    """A page in the visitor's language."""
    language = language_of(request)
    return respond(
        {"Content-Language": language.code},
        text=render(request, template, language, values),
        status=status,
        content_type="text/html",
    )


def respond(headers: Mapping[str, str], **parts: Any) -> web.Response:
    """An answer of these `parts` with `headers` and those that every guest's page has."""
    if "text" in parts:
        parts["charset"] = "utf-8"
    return web.Response(headers={**_HEADERS, **headers}, **parts)


def see_other(location: str) -> web.Response:
    """Go on there: a page that is loaded again sends nothing again."""
    return respond({"Location": location}, status=303)


def file_answer(body: bytes, kind: str, name: str) -> web.Response:
    """A file to keep."""
    disposition = f'attachment; filename="{name}"'
    return respond({"Content-Disposition": disposition}, body=body, content_type=kind)


def dead_link(request: web.Request) -> web.Response:
    """The page of expired, unknown and malformed links: nothing tells them apart."""
    response = page(request, "guest/dead_link.html", {}, status=404)
    response.headers[LINK_ENDS] = "0"
    return response


def language_of(request: web.Request) -> Language:
    """What `?lang=` says, else the partner's choice for this customer, else the browser's."""
    languages, chosen = request.config_dict[LANGUAGES], request.get(_PARTNERS_CHOICE)
    if chosen is not None and "lang" not in request.query:
        return languages.get(chosen)
    return languages.of(request)


def environment_of(request: web.Request) -> Environment:
    """The environment that the request came to."""
    return request[ENVIRONMENT]
