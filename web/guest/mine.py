"""My reservations: what this browser keeps, without an account."""

import json
from typing import Any

from aiohttp import web

from appliance.actions.ask_erasure import ask_erasure
from appliance.actions.claim import correct
from appliance.actions.export_guest import export_guests
from appliance.errors import RateLimited, Refusal
from appliance.model.booking import parse_uuid
from appliance.store.claims import delete_claims
from web.guest.answer import (
    DeadLink,
    environment_of,
    file_answer,
    guest_page,
    language_of,
    page,
    see_other,
)
from web.guest.card import make_card, moment_in_words
from web.guest.correction import correction_values, read_correction, refusal_in_words
from web.guest.device import find_device, forget_device
from web.guest.offer import takes_bookings
from web.guest.opened_link import OpenedLink, find_kept, list_kept


async def my_reservations(request: web.Request) -> web.Response:
    """`GET /me`: what this browser keeps, or how it comes to keep something."""
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
    """`GET /me/{id}`: one of them, with all that its guest may do."""
    return _show(request, await find_mine(request))


@guest_page
async def correct_mine(request: web.Request) -> web.Response:
    """`POST /me/{id}`: the name as its guest spells it, and how they can be reached."""
    opened = await find_mine(request)
    try:
        correction = await read_correction(request)
        if correction is not None:
            database = environment_of(request).database
            await database.write(correct, opened.reservation.id, correction)
    except RateLimited:
        raise
    except Refusal as refusal:
        return _show(request, opened, refusal)
    return _back(request, opened, "corrected")


@guest_page
async def my_data(request: web.Request) -> web.Response:
    """`GET /me/{id}/data.json`: all that the box knows of this guest (law 09-08)."""
    opened = await find_mine(request)
    known: dict[str, Any] = await environment_of(request).database.read(
        export_guests, [opened.reservation.id]
    )
    body = json.dumps(known, ensure_ascii=False, indent=2).encode()
    return file_answer(body, "application/json", f"{opened.venue.slug}-my-data.json")


@guest_page
async def erase_mine(request: web.Request) -> web.Response:
    """`POST /me/{id}/erasure`: asks that the box forget this guest."""
    opened = await find_mine(request)
    try:
        is_erased = await environment_of(request).database.write(ask_erasure, opened.reservation.id)
    except Refusal as refusal:
        return _show(request, opened, refusal)
    if is_erased:
        language = language_of(request).code
        return see_other(f"{environment_of(request).prefix}/me?lang={language}&done=erased")
    return _back(request, opened, "asked")


@guest_page
async def forget_all(request: web.Request) -> web.Response:
    """`POST /me/forget`: this browser keeps nothing any more; no reservation changes."""
    environment, device = environment_of(request), find_device(request)
    if device is not None:
        await environment.database.write(delete_claims, device.hash)
    response = see_other(f"{environment.prefix}/me?lang={language_of(request).code}")
    forget_device(request, response)
    return response


async def find_mine(request: web.Request) -> OpenedLink:
    """The reservation that the path names; DeadLink unless this browser keeps it."""
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


def _show(request: web.Request, opened: OpenedLink, refusal: Refusal | None = None) -> web.Response:
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
