"""The pages "my reservations", which need no account, and unsubscribing from reminders."""

import json

from aiohttp import web

from appliance.core.errors import ApiError, RateLimited
from appliance.http.request import ENVIRONMENT
from appliance.jobs.reservation_states import stop_reminders
from appliance.privacy import ask_erasure, export_guests
from appliance.reservations.change import Correction, correct
from appliance.reservations.rows import delete_claims, find_reservation
from web.guest.booking_form import takes_bookings
from web.guest.card import make_card, moment_in_words, refusal_in_words
from web.guest.claim import correction_values, read_correction
from web.guest.links import OpenedLink, find_device, forget_device, list_stored, open_mine
from web.guest.responses import (
    PARTNERS_LANGUAGE,
    dead_link,
    file_answer,
    guest_page,
    language_of,
    page,
    see_other,
)


async def my_reservations(request: web.Request) -> web.Response:
    """`GET /me`: list the reservations stored in this browser, or explain how to store one."""
    environment, device = request[ENVIRONMENT], find_device(request)
    language, stored = language_of(request), []
    if device is not None:
        stored = await environment.database.read(list_stored, environment, device.hash)
    values: dict[str, object] = {
        "items": [
            {"card": make_card(opened, language), "is_over": opened.is_over, **_links(opened)}
            for opened in stored
        ],
        "done": request.query.get("done", ""),
        "forget": f"{environment.prefix}/me/forget",
        "book": f"{environment.prefix}/book" if takes_bookings(environment) else None,
    }
    return page(request, "guest/mine.html", values)


@guest_page
async def my_reservation(request: web.Request) -> web.Response:
    """`GET /me/{id}`: show a stored reservation and the actions that the guest can take."""
    return _show(request, await open_mine(request))


@guest_page
async def correct_mine(request: web.Request) -> web.Response:
    """`POST /me/{id}`: correct the guest's name, contact details and language."""
    opened, database = await open_mine(request), request[ENVIRONMENT].database
    correction = None
    try:
        correction = await read_correction(request)
        if correction is not None:
            await database.write(correct, opened.reservation.id, correction)
    except RateLimited:
        raise
    except ApiError as refusal:
        return _show(request, opened, refusal, correction)
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
        return _show(request, opened, refusal)
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
    reservation_id = environment.keyring.read_access_token(request.match_info["token"])
    reservation = reservation_id and environment.database.peek(find_reservation, reservation_id)
    if not reservation:
        return dead_link(request)
    request[PARTNERS_LANGUAGE] = reservation.language
    if is_post:
        await environment.database.write(stop_reminders, reservation.id)
    return page(request, "guest/no_reminders.html", {"done": is_post})


def _back(request: web.Request, path: str, done: str) -> web.Response:
    return see_other(f"{path}?lang={language_of(request).code}&done={done}")


def _links(opened: OpenedLink) -> dict[str, str | None]:
    return {
        "here": opened.my_path,
        "access": opened.access_path if opened.is_alive and opened.guest_pass else None,
        "undo": f"{opened.my_path}/cancel" if opened.may_cancel else None,
    }


def _show(
    request: web.Request,
    opened: OpenedLink,
    refusal: ApiError | None = None,
    refused: Correction | None = None,
) -> web.Response:
    language = language_of(request)
    values: dict[str, object] = {
        "card": make_card(opened, language),
        **_links(opened),
        "mine": f"{request[ENVIRONMENT].prefix}/me",
        "until": moment_in_words(opened.cancel_until, opened.zone, language),
        "may_correct": opened.reservation.holds and not opened.is_over,
        "asked_for_erasure": opened.asked_for_erasure,
        "is_erased": opened.reservation.customer_name is None,
        "done": request.query.get("done", ""),
        "fault": refusal_in_words(refusal, language) if refusal else None,
        **correction_values(opened, language, refused),
    }
    status = refusal.status if refusal else 200
    return page(request, "guest/my_reservation.html", values, status)
