"""The claim page: the guest says "yes, this is mine" (contract section 2.7, `claimUrl`)."""

from aiohttp import web

from terminal_bridge.same_origin import is_from_our_page
from web.guest.answer import dead_link, environment_of, language_of, open_link, page
from web.guest.card import make_card


async def claim_page(request: web.Request) -> web.Response:
    """`GET /claim-guest/{token}`: the reservation and a button. Looking changes nothing."""
    return await _show(request, "guest/claim.html")


async def claim(request: web.Request) -> web.Response:
    """`POST /claim-guest/{token}`: the tap, answered with the way to the pass."""
    if not is_from_our_page(request, environment_of(request).links.base):
        return page(request, "guest/elsewhere.html", {}, status=403)
    return await _show(request, "guest/claimed.html")


async def _show(request: web.Request, template: str) -> web.Response:
    environment = environment_of(request)
    token = request.match_info["token"]
    opened = await open_link(environment, environment.keyring.read_claim_token(token))
    if opened is None:
        return dead_link(request)
    access_token = environment.keyring.access_token(opened.reservation.id)
    return page(
        request,
        template,
        {
            "card": make_card(opened, language_of(request)),
            "is_held": opened.reservation.holds,
            "access": f"{environment.prefix}/access/{access_token}",
        },
    )
