"""My reservations: those stored in this browser, without an account; and reminder opt-out."""

import json
from typing import Any

from aiohttp import web

from appliance.core.errors import ApiError, RateLimited
from appliance.jobs.reservation_states import stop_reminders
from appliance.privacy import ask_erasure, export_guests
from appliance.reservations.change import correct
from appliance.reservations.request import parse_uuid
from appliance.reservations.rows import delete_claims, find_reservation
from web.guest.booking_form import takes_bookings
from web.guest.card import make_card, moment_in_words
from web.guest.claim import correction_values, read_correction, refusal_in_words
from web.guest.device import find_device, forget_device
from web.guest.responses import (
    DeadLink,
    OpenedLink,
    dead_link,
    environment_of,
    file_answer,
    find_kept,
    guest_page,
    language_of,
    list_kept,
    page,
    see_other,
)


async def my_reservations(request: web.Request) -> web.Response:
    """`GET /me`: the stored reservations, or how to store one."""
    environment, device = environment_of(request), find_device(request)
    kept: list[OpenedLink] = []
    if device is not None:
        kept = await environment.database.read(list_kept, environment, device.hash)
    language = language_of(request)
    items = [
        {"card": make_card(one, language), "is_over": one.is_over, **_places(request, one)}
        for one in kept
    ]
    values: dict[str, object] = {
        "items": items,
        "done": request.query.get("done", ""),
        "forget": f"{environment.prefix}/me/forget",
        "book": f"{environment.prefix}/book" if takes_bookings(environment) else None,
    }
    return page(request, "guest/mine.html", values)


@guest_page
async def my_reservation(request: web.Request) -> web.Response:
    """`GET /me/{id}`: one of them, with all actions that its guest may take."""
    return _show(request, await find_mine(request))


@guest_page
async def correct_mine(request: web.Request) -> web.Response:
    """`POST /me/{id}`: correct the guest's name and contacts."""
    opened = await find_mine(request)
    try:
        correction = await read_correction(request)
        if correction is not None:
            database = environment_of(request).database
            await database.write(correct, opened.reservation.id, correction)
    except RateLimited:
        raise
    except ApiError as refusal:
        return _show(request, opened, refusal)
    return _back(request, opened, "corrected")


@guest_page
async def my_data(request: web.Request) -> web.Response:
    """`GET /me/{id}/data.json`: all data about this guest (law 09-08)."""
    opened = await find_mine(request)
    known: dict[str, Any] = await environment_of(request).database.read(
        export_guests, [opened.reservation.id]
    )
    body = json.dumps(known, ensure_ascii=False, indent=2).encode()
    return file_answer(body, "application/json", f"{opened.venue.slug}-my-data.json")


@guest_page
async def erase_mine(request: web.Request) -> web.Response:
    """`POST /me/{id}/erasure`: request erasure of this guest's data."""
    opened = await find_mine(request)
    try:
        is_erased = await environment_of(request).database.write(ask_erasure, opened.reservation.id)
    except ApiError as refusal:
        return _show(request, opened, refusal)
    if is_erased:
        language = language_of(request).code
        return see_other(f"{environment_of(request).prefix}/me?lang={language}&done=erased")
    return _back(request, opened, "asked")


@guest_page
async def forget_all(request: web.Request) -> web.Response:
    """`POST /me/forget`: remove all reservations from this browser; none is cancelled."""
    environment, device = environment_of(request), find_device(request)
    if device is not None:
        await environment.database.write(delete_claims, device.hash)
    response = see_other(f"{environment.prefix}/me?lang={language_of(request).code}")
    forget_device(request, response)
    return response


async def find_mine(request: web.Request) -> OpenedLink:
    """Return the reservation in the path. Raises DeadLink unless this browser stores it."""
    environment, device = environment_of(request), find_device(request)
    reservation_id = parse_uuid(request.match_info["id"])
    if device is None or reservation_id is None:
        raise DeadLink
    found = await environment.database.read(find_kept, environment, device.hash, reservation_id)
    if found is None:
        raise DeadLink
    return found


def _back(request: web.Request, opened: OpenedLink, done: str) -> web.Response:
    place = _places(request, opened)["here"]
    return see_other(f"{place}?lang={language_of(request).code}&done={done}")


def _places(request: web.Request, opened: OpenedLink) -> dict[str, str | None]:
    environment, id_ = environment_of(request), opened.reservation.id
    here = f"{environment.prefix}/me/{id_}"
    access = f"{environment.prefix}/access/{environment.keyring.access_token(id_)}"
    return {
        "here": here,
        "access": access if opened.is_alive and opened.guest_pass else None,
        "undo": f"{here}/cancel" if opened.may_cancel else None,
    }


def _show(
    request: web.Request, opened: OpenedLink, refusal: ApiError | None = None
) -> web.Response:
    language = language_of(request)
    values: dict[str, object] = {
        "card": make_card(opened, language),
        **_places(request, opened),
        "mine": f"{environment_of(request).prefix}/me",
        "until": moment_in_words(opened.cancel_until, opened.zone, language),
        "may_correct": opened.reservation.holds and not opened.is_over,
        "asked_for_erasure": opened.asked_for_erasure,
        "is_erased": opened.reservation.customer_name is None,
        "done": request.query.get("done", ""),
        "fault": refusal_in_words(refusal, language) if refusal else None,
        **correction_values(opened, language),
    }
    status = refusal.status if refusal else 200
    return page(request, "guest/my_reservation.html", values, status)


async def ask(request: web.Request) -> web.Response:
    """`GET /no-reminders/{token}`: a button. A GET changes nothing: link previews send it too."""
    if _find(request) is None:
        return dead_link(request)
    return page(request, "guest/no_reminders.html", {"done": False})


async def stop(request: web.Request) -> web.Response:
    """`POST /no-reminders/{token}`: from the button, or one-click from a mail program.

    Any origin is accepted: the link in the email authorises the request.
    """
    reservation_id = _find(request)
    if reservation_id is None:
        return dead_link(request)
    await environment_of(request).database.write(stop_reminders, reservation_id)
    return page(request, "guest/no_reminders.html", {"done": True})


def _find(request: web.Request) -> str | None:
    environment = environment_of(request)
    id_ = environment.keyring.read_access_token(request.match_info["token"])
    return id_ if id_ and environment.database.peek(find_reservation, id_) else None


NO_REMINDERS_ROUTES = (
    ("GET", "/no-reminders/{token:.*}", ask),
    ("POST", "/no-reminders/{token:.*}", stop),
)
