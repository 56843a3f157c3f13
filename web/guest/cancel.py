"""Cancelling, by the link in a letter or from "my reservations": a question, and a tap."""

from aiohttp import web

from appliance.actions.cancel_by_guest import cancel_by_guest
from appliance.errors import RateLimited, Unavailable, WrongState
from terminal_bridge.same_origin import is_from_our_page
from web.guest.answer import (
    dead_link,
    elsewhere,
    environment_of,
    language_of,
    open_link,
    page,
    slow_down,
)
from web.guest.card import make_card, moment_in_words
from web.guest.correction import refusal_in_words
from web.guest.desk import desk_of
from web.guest.mine import find_mine
from web.guest.opened_link import OpenedLink


async def cancel_page(request: web.Request) -> web.Response:
    """`GET …/cancel`: what would be cancelled, and until when. Looking changes nothing."""
    opened = await _opened(request)
    return dead_link(request) if opened is None else _show(request, opened)


async def cancel(request: web.Request) -> web.Response:
    """`POST …/cancel`: the tap. A second one changes nothing more."""
    environment = environment_of(request)
    if not is_from_our_page(request, environment.links.base):
        return elsewhere(request)
    opened = await _opened(request)
    if opened is None:
        return dead_link(request)
    fault, status = None, 200
    try:
        desk_of(request).count_tap(request)
        await environment.database.write(
            cancel_by_guest, opened.reservation.id, environment.settings.guest.cancel_hours
        )
    except RateLimited:
        return slow_down(request)
    except WrongState as refusal:  # the page says by itself how it stands
        status = refusal.status
    except Unavailable as refusal:
        fault, status = refusal_in_words(refusal, language_of(request)), refusal.status
    opened = await _opened(request) or opened
    return _show(request, opened, fault=fault, status=status)


async def _opened(request: web.Request) -> OpenedLink | None:
    if "token" not in request.match_info:
        return await find_mine(request)
    environment = environment_of(request)
    token = request.match_info["token"]
    return await open_link(request, environment.keyring.read_claim_token(token))


def _show(
    request: web.Request, opened: OpenedLink, *, fault: str | None = None, status: int = 200
) -> web.Response:
    environment, language = environment_of(request), language_of(request)
    policies = opened.venue.policies or {}
    rule = policies.get("cancellation")
    reservation = opened.reservation
    access_token = environment.keyring.access_token(reservation.id)
    is_past = opened.is_over or reservation.status == "completed"
    has_arrived = reservation.checked_in_at is not None and not is_past
    values: dict[str, object] = {
        "card": make_card(opened, language),
        "holds": reservation.holds,
        "has_arrived": has_arrived,
        "is_past": is_past,
        "is_expected": reservation.holds and not has_arrived and not is_past,
        "may_cancel": opened.may_cancel,
        "until": moment_in_words(opened.cancel_until, opened.zone, language),
        "rule": rule if isinstance(rule, str) else None,
        "access": f"{environment.prefix}/access/{access_token}" if opened.is_alive else None,
        "books": environment.name == "test" or environment.settings.booking.enabled,
        "book": f"{environment.prefix}/book",
        "fault": fault,
    }
    return page(request, "guest/cancel.html", values, status=status)
