"""The claim page: the guest says "yes, this is mine" (interface, section 2.7, `claimUrl`)."""

from aiohttp import web

from appliance.actions.claim import claim as claim_reservation
from appliance.errors import RateLimited, Refusal
from appliance.tokens import Keyring
from web.guest.answer import environment_of, guest_page, language_of, open_link, page
from web.guest.card import make_card
from web.guest.correction import correction_values, read_correction, refusal_in_words
from web.guest.device import device_for, keep_device
from web.guest.opened_link import OpenedLink


@guest_page
async def claim_page(request: web.Request) -> web.Response:
    """`GET /claim-guest/{token}`: the reservation and a button. Looking changes nothing."""
    opened = await open_link(request, Keyring.read_claim_token)
    return _show(request, "guest/claim.html", opened)


@guest_page
async def claim(request: web.Request) -> web.Response:
    """`POST /claim-guest/{token}`: the tap keeps the reservation in this browser.

    It may bring corrections. A second tap is answered as the first one was.
    """
    opened = await open_link(request, Keyring.read_claim_token)
    database, device = environment_of(request).database, device_for(request)
    try:
        correction = await read_correction(request)
        device_hash = device.hash if device else None
        await database.write(claim_reservation, opened.reservation.id, device_hash, correction)
    except RateLimited:
        raise
    except Refusal as refusal:
        return _show(request, "guest/claim.html", opened, refusal)
    opened = await open_link(request, Keyring.read_claim_token)
    response = _show(request, "guest/claimed.html", opened, is_kept=device is not None)
    if opened.reservation.holds:
        keep_device(request, response, device)
    return response


def _show(
    request: web.Request,
    template: str,
    opened: OpenedLink,
    refusal: Refusal | None = None,
    *,
    is_kept: bool = False,
) -> web.Response:
    environment, language = environment_of(request), language_of(request)
    access_token = environment.keyring.access_token(opened.reservation.id)
    values: dict[str, object] = {
        "card": make_card(opened, language),
        "is_held": opened.reservation.holds,
        "may_cancel": opened.may_cancel,
        "may_correct": opened.reservation.holds and opened.reservation.status != "completed",
        "access": f"{environment.prefix}/access/{access_token}",
        "mine": f"{environment.prefix}/me",
        "undo": f"{environment.prefix}/claim-guest/{request.match_info['token']}/cancel",
        "is_kept": is_kept,
        "fault": refusal_in_words(refusal, language) if refusal else None,
        **correction_values(opened, language),
    }
    return page(request, template, values, refusal.status if refusal else 200)
