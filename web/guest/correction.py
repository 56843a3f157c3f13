"""What a guest corrects of a reservation: read from the form, refused in their words."""

from aiohttp import web

from appliance.actions.claim import Correction
from appliance.errors import (
    CustomerNameRequired,
    InvalidEmail,
    Refusal,
    Unavailable,
    ValidationError,
    WrongState,
)
from appliance.i18n import Language
from appliance.model.reservation import Reservation
from web.guest.opened_link import OpenedLink
from web.portal.forms import read_form


async def read_correction(request: web.Request) -> Correction | None:
    """The fields that were filled in; None for a tap without a form. Refusals as `read_form`."""
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
    """What the form shows: the name as it is, of the contacts enough to know them again.

    Letters come in the language of this page until somebody chose another.
    """
    found = opened.reservation
    return {
        "name": found.customer_name or "",
        "email_hint": _mask_email(found.customer_email),
        "phone_hint": _mask_phone(found),
        "letters_in": found.language or language.code,
    }


def refusal_in_words(refusal: Refusal, language: Language) -> str:
    """Why nothing was changed, and what to do."""
    _ = language.gettext
    if isinstance(refusal, ValidationError) and refusal.field == "phone":
        return _("This phone number cannot be right: 6 to 20 digits are needed.")
    sentences: dict[type[Refusal], str] = {
        CustomerNameRequired: _("Please write your name."),
        InvalidEmail: _("This email address cannot be right: please look at it once more."),
        ValidationError: _("One of the fields is too long: please shorten it."),
        WrongState: _("This is not possible any more: the reservation has changed meanwhile."),
        Unavailable: _("The box is busy. Nothing was lost: please try again in a moment."),
    }
    otherwise = _("This was not possible. Nothing was changed: please call the venue.")
    return sentences.get(type(refusal), otherwise)


def _mask_email(email: str | None) -> str:
    """`s…@example.org`: a page that a link opens shows no address to strangers."""
    if not email:
        return ""
    name, _, domain = email.partition("@")
    return f"{name[:1]}…@{domain}"


def _mask_phone(found: Reservation) -> str:
    digits = [c for c in found.customer_phone or "" if c.isdecimal()]
    return f"… {''.join(digits[-2:])}" if digits else ""
