"""The claim page and "my reservations", which needs no account."""

import json
from collections.abc import Callable

from aiohttp import web

from appliance.core.errors import ApiError, RateLimited
from appliance.database.connection import Transaction
from appliance.http.request import ENVIRONMENT
from appliance.jobs.reservation_states import stop_reminders
from appliance.privacy import ask_erasure, export_guests
from appliance.reservations.by_guest import Correction, claim, correct
from appliance.reservations.model import Reservation
from appliance.reservations.request import read_contacts
from appliance.reservations.rows import delete_claims, find_reservation
from web.guest.card import make_card, reservation_page
from web.guest.links import (
    OpenedLink,
    device_for,
    find_device,
    forget_device,
    keep_device,
    list_stored,
    open_link,
    open_mine,
)
from web.guest.responses import (
    PARTNERS_LANGUAGE,
    dead_link,
    file_answer,
    guest_page,
    language_of,
    page,
    see_other,
    takes_bookings,
)
from web.portal.forms import read_form


@guest_page
async def claim_page(request: web.Request) -> web.Response:
    """`GET|POST /claim-guest/{token}`: show the reservation, or store it in this browser.

    A GET shows a button. The form may also correct the guest's details. Submitting the form again
    returns the same response.
    """
    opened = await open_link(request, "claim")
    if request.method != "POST":  # HEAD, like GET, only shows the page
        return _show_form(request, "guest/claim.html", opened)
    device = device_for(request)

    def store(tx: Transaction, correction: Correction | None) -> Reservation:
        return claim(tx, opened.reservation.id, device.hash if device else None, correction)

    refusal, correction = await _correct(request, store)
    if refusal is not None:
        return _show_form(request, "guest/claim.html", opened, refusal, correction)
    opened = await open_link(request, "claim")
    response = reservation_page(request, "guest/claimed.html", opened, is_kept=device is not None)
    if opened.is_open:
        keep_device(request, response, device)
    return response


async def my_reservations(request: web.Request) -> web.Response:
    """`GET /me`: list the reservations stored in this browser, or explain how to store one."""
    environment, device = request[ENVIRONMENT], find_device(request)
    language, stored = language_of(request), []
    if device is not None:
        stored = await environment.database.read(list_stored, environment, device.hash)
    values: dict[str, object] = {
        "items": [(make_card(opened, language), opened) for opened in stored],
        "done": request.query.get("done", ""),
        "forget": f"{environment.prefix}/me/forget",
        "book": f"{environment.prefix}/book" if takes_bookings(environment) else None,
    }
    return page(request, "guest/mine.html", values)


@guest_page
async def my_reservation(request: web.Request) -> web.Response:
    """`GET|POST /me/{id}`: show a stored reservation, or correct the guest's details."""
    opened = await open_mine(request)
    if request.method != "POST":  # HEAD, like GET, only shows the page
        return _show_form(request, "guest/my_reservation.html", opened)

    def store(tx: Transaction, correction: Correction | None) -> Reservation | None:
        return correct(tx, opened.reservation.id, correction) if correction else None

    refusal, correction = await _correct(request, store)
    if refusal is not None:
        return _show_form(request, "guest/my_reservation.html", opened, refusal, correction)
    return _back(request, opened.my_path, "corrected")


@guest_page
async def my_data(request: web.Request) -> web.Response:
    """`GET /me/{id}/data.json`: download all data about this guest (law 09-08)."""
    opened, database = await open_mine(request), request[ENVIRONMENT].database
    data = await database.read(export_guests, [opened.reservation.id])
    body = json.dumps(data, ensure_ascii=False, indent=2).encode()
    return file_answer(body, "application/json", f"{opened.venue.slug}-my-data.json")


@guest_page
async def erase_mine(request: web.Request) -> web.Response:
    """`POST /me/{id}/erasure`: request the erasure of this guest's data."""
    opened, environment = await open_mine(request), request[ENVIRONMENT]
    try:
        is_erased = await environment.database.write(ask_erasure, opened.reservation.id)
    except ApiError as refusal:
        return _show_form(request, "guest/my_reservation.html", opened, refusal)
    if is_erased:
        return _back(request, f"{environment.prefix}/me", "erased")
    return _back(request, opened.my_path, "asked")


@guest_page
async def forget_all(request: web.Request) -> web.Response:
    """`POST /me/forget`: remove all reservations from this browser without cancelling them."""
    environment, device = request[ENVIRONMENT], find_device(request)
    if device is not None:
        await environment.database.write(delete_claims, device.hash)
    response = see_other(f"{environment.prefix}/me?lang={language_of(request).code}")
    forget_device(request, response)
    return response


async def no_reminders(request: web.Request) -> web.Response:
    """`GET|POST /no-reminders/{token}`: show an unsubscribe button, or unsubscribe from reminders.

    A GET only shows the button, because link previews send GET requests too. A POST unsubscribes.
    It comes from the button or, as a one-click request, from an email client. Its origin is not
    checked, because the token authorises it.
    """
    environment, is_post = request[ENVIRONMENT], request.method == "POST"
    link = environment.keyring.read_access_token(request.match_info["token"])
    reservation = link and environment.database.peek(find_reservation, link[0])
    if not reservation:
        return dead_link(request)
    request[PARTNERS_LANGUAGE] = reservation.language
    if is_post:
        await environment.database.write(stop_reminders, reservation.id)
    return page(request, "guest/no_reminders.html", {"done": is_post})


def _back(request: web.Request, path: str, done: str) -> web.Response:
    return see_other(f"{path}?lang={language_of(request).code}&done={done}")


async def _correct(
    request: web.Request, store: Callable[[Transaction, Correction | None], object]
) -> tuple[ApiError | None, Correction | None]:
    """Read the correction from the form, if the request has a form, and store it.

    Return (error, correction). The error is None on success. Raises RateLimited.
    """
    correction = None
    try:
        if request.body_exists:
            form = await read_form(request)
            email, phone = read_contacts(form.text("email", 1000), form.text("phone", 1000))
            correction = Correction(
                name=form.text("name", 1000) or None,
                email=email,
                phone=phone,
                language=form.text("language") or None,
            )
        await request[ENVIRONMENT].database.write(store, correction)
    except RateLimited:
        raise
    except ApiError as refusal:
        return refusal, correction
    return None, correction


def _show_form(
    request: web.Request,
    template: str,
    opened: OpenedLink,
    refusal: ApiError | None = None,
    correction: Correction | None = None,
) -> web.Response:
    """Return a page with the form for corrections, filled in with the values in `correction`.

    Guests may share their link, so the email address and the phone number are shown only in part
    (`s…@example.org` and the last two digits). By default, the language for emails is the language
    of this page.
    """
    reservation, typed = opened.reservation, correction or Correction()
    user, at, domain = (reservation.customer_email or "").partition("@")
    fields = {
        "name": typed.name or reservation.customer_name or "",
        "email": typed.email or "",
        "phone": typed.phone or "",
        "email_hint": f"{user[:1]}…@{domain}" if at else "",
        "phone_hint": f"… {reservation.phone_end}" if reservation.phone_end else "",
        "language": typed.language or reservation.language or language_of(request).code,
    }
    kept_days = opened.venue.contact_days
    return reservation_page(request, template, opened, refusal, typed=fields, kept_days=kept_days)
