"""The claim page, where guests store and correct a reservation (interface, section 2.7)."""

from aiohttp import web

from appliance.core.errors import ApiError, RateLimited
from appliance.core.i18n import Language
from appliance.core.tokens import Keyring
from appliance.http.request import ENVIRONMENT
from appliance.reservations.change import Correction
from appliance.reservations.change import claim as claim_reservation
from appliance.reservations.model import OPEN_STATUSES
from web.guest.card import make_card, refusal_in_words
from web.guest.links import OpenedLink, device_for, keep_device, open_link
from web.guest.responses import guest_page, language_of, page
from web.portal.forms import read_form


@guest_page
async def claim_page(request: web.Request) -> web.Response:
    """`GET /claim-guest/{token}`: show the reservation and a button that stores it."""
    opened = await open_link(request, Keyring.read_claim_token)
    return _show(request, "guest/claim.html", opened)


@guest_page
async def claim(request: web.Request) -> web.Response:
    """`POST /claim-guest/{token}`: store the reservation in this browser's "my reservations".

    The form may also correct the guest's details. Sending it again gets the same response.
    """
    opened = await open_link(request, Keyring.read_claim_token)
    database, device = request[ENVIRONMENT].database, device_for(request)
    correction = None
    try:
        correction = await read_correction(request)
        device_hash = device.hash if device else None
        await database.write(claim_reservation, opened.reservation.id, device_hash, correction)
    except RateLimited:
        raise
    except ApiError as refusal:
        return _show(request, "guest/claim.html", opened, refusal, correction)
    opened = await open_link(request, Keyring.read_claim_token)
    response = _show(request, "guest/claimed.html", opened, is_kept=device is not None)
    if opened.reservation.status in OPEN_STATUSES:
        keep_device(request, response, device)
    return response


async def read_correction(request: web.Request) -> Correction | None:
    """Return the corrections in the form, or None if the request has no form.

    Raises the same errors as `read_form`.
    """
    if not request.body_exists:
        return None
    form = await read_form(request)
    return Correction(
        name=form.text("name", 1000) or None,
        email=form.text("email", 1000) or None,
        phone=form.text("phone", 1000) or None,
        language=form.text("language") or None,
    )


def correction_values(
    opened: OpenedLink, language: Language, refused: Correction | None = None
) -> dict[str, object]:
    """Return the template values for the correction form, with what was typed in `refused`.

    Guests may share their link, so the email address and the phone number are shown only in part
    (`s…@example.org` and the last two digits). `letters_in` is the language for emails, by default
    the language of this page.
    """
    typed = refused or Correction()
    reservation = opened.reservation
    user, at, domain = (reservation.customer_email or "").partition("@")
    digits = [c for c in reservation.customer_phone or "" if c.isdecimal()]
    return {
        "name": typed.name or reservation.customer_name or "",
        "email": typed.email or "",
        "phone": typed.phone or "",
        "email_hint": f"{user[:1]}…@{domain}" if at else "",
        "phone_hint": f"… {''.join(digits[-2:])}" if digits else "",
        "letters_in": typed.language or reservation.language or language.code,
    }


def _show(
    request: web.Request,
    template: str,
    opened: OpenedLink,
    refusal: ApiError | None = None,
    refused: Correction | None = None,
    *,
    is_kept: bool = False,
) -> web.Response:
    environment, language = request[ENVIRONMENT], language_of(request)
    reservation = opened.reservation
    values: dict[str, object] = {
        "card": make_card(opened, language),
        "is_held": reservation.status in OPEN_STATUSES,
        "may_cancel": opened.may_cancel,
        "access": opened.access_path,
        "mine": f"{environment.prefix}/me",
        "undo": f"{environment.prefix}/claim-guest/{request.match_info['token']}/cancel",
        "is_kept": is_kept,
        "fault": refusal_in_words(refusal, language) if refusal else None,
        **correction_values(opened, language, refused),
    }
    return page(request, template, values, refusal.status if refusal else 200)
