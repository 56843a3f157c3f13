"""A new terminal: a phone that scans a one-time code, or a token for what has no browser."""

import asyncio

from aiohttp import web

from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.offer_pairing import PAIRING_LIFE_MS, offer_pairing
from appliance.environment import terminal_base, trust_page
from appliance.errors import NotFound
from appliance.model.qr import link_svg
from appliance.store.pairings import find_offer
from appliance.tokens import hash_token
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, portal_page, see_other
from web.portal.door.terminals import actor_of, read_terminal
from web.portal.forms import read_form
from web.portal.sent_twice import make_once


async def offer(request: web.Request) -> web.Response:
    """`POST …/pair`: the code as a QR, as digits and as a link; shown this once."""
    environment = request[ENVIRONMENT]
    name, role = read_terminal(await read_form(request))
    offered = await environment.database.write(offer_pairing, name, role, actor=actor_of(request))
    base = terminal_base(environment.links, environment.settings.server)
    link = offered.link(base)
    values: dict[str, object] = {
        "name": name,
        "code": offered.code,
        "link": link,
        "picture": await asyncio.to_thread(link_svg, link),
        "trust": trust_page(environment.links, base),
        "minutes": PAIRING_LIFE_MS // 60_000,
        "mark": hash_token(offered.secret).hex(),
        "state": "open",
    }
    return portal_page(request, "portal/door/pairing.html", values)


async def show_state(request: web.Request) -> web.Response:
    """`GET …/pairings/{mark}`: whether the phone has come; asked again while it is awaited."""
    mark = request.match_info["mark"]
    try:
        secret_hash = bytes.fromhex(mark)
    except ValueError:
        raise NotFound from None
    found = request[ENVIRONMENT].database.peek(find_offer, secret_hash)
    state = "over" if found is None else found.state
    values: dict[str, object] = {"mark": mark, "state": state}
    if "HX-Request" in request.headers:
        return portal_page(request, "portal/door/pairing_state.html", values)
    return portal_page(request, "portal/door/pairing_page.html", values)


async def issue(request: web.Request) -> web.Response:
    """`POST …/issue`: a token for a scanner or a bridge; shown this once."""
    environment, form = request[ENVIRONMENT], await read_form(request)
    name, role = read_terminal(form)
    language = language_of(request).code

    async def make() -> str:
        _, token = await environment.database.write(
            issue_terminal, name, role, language, actor=actor_of(request)
        )
        return token

    token = await make_once(request, form, make)
    if token is None:
        return see_other(request, "/door")
    base = terminal_base(environment.links, environment.settings.server)
    values: dict[str, object] = {"name": name, "token": token, "address": f"{base}/terminal/v1"}
    return portal_page(request, "portal/door/token.html", values)
