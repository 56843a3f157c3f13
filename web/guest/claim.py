"""The claim page and its corrections (interface, section 2.7, `claimUrl`)."""

from aiohttp import web

from appliance.core.errors import (
    ApiError,
    CustomerNameRequired,
    InvalidEmail,
    RateLimited,
    Unavailable,
    ValidationError,
    WrongState,
)
from appliance.core.i18n import Language
from appliance.core.tokens import Keyring
from appliance.reservations.change import Correction
from appliance.reservations.change import claim as claim_reservation
from appliance.reservations.model import Reservation
from web.guest.card import make_card
from web.guest.device import device_for, keep_device
from web.guest.responses import OpenedLink, environment_of, guest_page, language_of, open_link, page
from web.portal.forms import read_form


async def read_correction(request: web.Request) -> Correction | None:
    """Return the completed fields; None for a request without a form. Raises as `read_form`."""
    if not request.body_exists:
        return None
    form = await read_form(request)
    return Correction(
        name=form.text("name", 1000) or None,
        email=form.text("email", 1000) or None,
        phone=form.text("phone", 1000) or None,
        language=form.text("language") or None,
    )


def correction_values(opened: OpenedLink, language: Language) -> dict[str, object]:
    """Return the form's values: the name, and masked contacts.

    Emails use the language of this page until another is chosen.
    """
    found = opened.reservation
    return {
        "name": found.customer_name or "",
        "email_hint": _mask_email(found.customer_email),
        "phone_hint": _mask_phone(found),
        "letters_in": found.language or language.code,
    }


def refusal_in_words(refusal: ApiError, language: Language) -> str:
    """Return why nothing was changed, and what to do."""
    _ = language.gettext
    if isinstance(refusal, ValidationError) and refusal.field == "phone":
        return _("This phone number cannot be right: 6 to 20 digits are needed.")
    sentences: dict[type[ApiError], str] = {
        CustomerNameRequired: _("Please write your name."),
        InvalidEmail: _("This email address cannot be right: please look at it once more."),
        ValidationError: _("One of the fields is too long: please shorten it."),
        WrongState: _("This is not possible any more: the reservation has changed meanwhile."),
        Unavailable: _("The box is busy. Nothing was lost: please try again in a moment."),
    }
    otherwise = _("This was not possible. Nothing was changed: please call the venue.")
    return sentences.get(type(refusal), otherwise)


def _mask_email(email: str | None) -> str:
    """Return `s…@example.org`: a link may be shared, so the page hides the address."""
    if not email:
        return ""
    name, _, domain = email.partition("@")
    return f"{name[:1]}…@{domain}"


def _mask_phone(found: Reservation) -> str:
    digits = [c for c in found.customer_phone or "" if c.isdecimal()]
    return f"… {''.join(digits[-2:])}" if digits else ""


@guest_page
async def claim_page(request: web.Request) -> web.Response:
    """`GET /claim-guest/{token}`: the reservation and a button. A GET changes nothing."""
    opened = await open_link(request, Keyring.read_claim_token)
    return _show(request, "guest/claim.html", opened)


@guest_page
async def claim(request: web.Request) -> web.Response:
    """`POST /claim-guest/{token}`: store the reservation in this browser.

    The form may contain corrections. A second POST gets the same answer.
    """
    opened = await open_link(request, Keyring.read_claim_token)
    database, device = environment_of(request).database, device_for(request)
    try:
        correction = await read_correction(request)
        device_hash = device.hash if device else None
        await database.write(claim_reservation, opened.reservation.id, device_hash, correction)
    except RateLimited:
        raise
    except ApiError as refusal:
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
    refusal: ApiError | None = None,
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
