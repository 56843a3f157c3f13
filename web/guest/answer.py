"""What every answer to a guest has in common: headers, and the one page for a dead link."""

from aiohttp import web

from appliance.environment import Environment
from appliance.i18n import Language
from terminal_bridge.context import ENVIRONMENT
from web.guest.opened_link import OpenedLink, find_opened
from web.rendering import LANGUAGES, page_headers, render

_HEADERS = page_headers()
# Until when a phone may keep a card (ms since 1970). A page that kept one takes only answers with
# this header for ours: what a tunnel or a captive portal says in our place has none.
LINK_ENDS = "Venuebox-Link-Ends"


_PARTNERS_CHOICE: web.RequestKey[str | None] = web.RequestKey("partners_choice")


async def open_link(request: web.Request, reservation_id: str | None) -> OpenedLink | None:
    """What a link opens, or None: unknown and expired ones are alike.

    One that this box never made costs no look into the database. The language that a partner
    gave for its customer becomes that of the request.
    """
    if reservation_id is None:
        return None
    environment = environment_of(request)
    opened = await environment.database.read(find_opened, environment, reservation_id)
    if opened is not None and opened.reservation.source == "partner":
        request[_PARTNERS_CHOICE] = opened.reservation.language
    return opened


def page(
    request: web.Request, template: str, values: dict[str, object], status: int = 200
) -> web.Response:
    """A page in the visitor's language."""
    language = language_of(request)
    return web.Response(
        text=render(request, template, language, values),
        status=status,
        content_type="text/html",
        charset="utf-8",
        headers={**_HEADERS, "Content-Language": language.code},
    )


def see_other(location: str) -> web.Response:
    """Go on there: a page that is loaded again sends nothing again."""
    return web.Response(status=303, headers={**_HEADERS, "Location": location})


def file_answer(body: bytes, kind: str, name: str) -> web.Response:
    """A file to keep."""
    disposition = f'attachment; filename="{name}"'
    return web.Response(
        body=body, content_type=kind, headers={**_HEADERS, "Content-Disposition": disposition}
    )


def unchanged(mark: str) -> web.Response:
    """What the visitor has is still so."""
    return web.Response(status=304, headers={**_HEADERS, "ETag": mark})


def slow_down(request: web.Request) -> web.Response:
    """Too much at once: in a minute it goes on."""
    response = page(request, "guest/slow_down.html", {}, status=429)
    response.headers["Retry-After"] = "60"
    return response


def elsewhere(request: web.Request) -> web.Response:
    """The tap came from a page of somebody else: it did nothing."""
    return page(request, "guest/elsewhere.html", {}, status=403)


def script(text: str, headers: dict[str, str]) -> web.Response:
    """A script that is asked for anew each time."""
    return web.Response(
        text=text,
        content_type="text/javascript",
        charset="utf-8",
        headers={**_HEADERS, "Cache-Control": "no-cache", **headers},
    )


def calendar_answer(text: str) -> web.Response:
    """An `.ics` that a phone offers to put into its calendar."""
    return web.Response(
        text=text,
        content_type="text/calendar",
        charset="utf-8",
        headers={**_HEADERS, "Content-Disposition": 'inline; filename="reservation.ics"'},
    )


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
