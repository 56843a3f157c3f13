"""The page where guests cancel. Emails and "my reservations" link to it."""

from contextlib import suppress

from aiohttp import web

from appliance.core.errors import ApiError, Unavailable, WrongState
from appliance.core.tokens import Keyring
from appliance.http.request import ENVIRONMENT
from appliance.reservations.change import cancel_by_guest
from web.guest.booking_form import takes_bookings
from web.guest.card import make_card, moment_in_words, refusal_in_words
from web.guest.links import OpenedLink, open_link, open_mine
from web.guest.responses import DeadLink, guest_page, language_of, page


@guest_page
async def cancel_page(request: web.Request) -> web.Response:
    """`GET …/cancel`: show the reservation, its cancellation deadline and a cancel button."""
    return _show(request, await _open(request))


@guest_page
async def cancel(request: web.Request) -> web.Response:
    """`POST …/cancel`: cancel the reservation. A second POST has no effect."""
    environment, opened = request[ENVIRONMENT], await _open(request)
    hours, refusal = environment.settings.guest.cancel_hours, None
    try:
        await environment.database.write(cancel_by_guest, opened.reservation.id, hours)
    except (WrongState, Unavailable) as error:
        refusal = error
    with suppress(DeadLink):  # if the link has just expired, show the state read above
        opened = await _open(request)
    return _show(request, opened, refusal)


async def _open(request: web.Request) -> OpenedLink:
    if "token" in request.match_info:
        return await open_link(request, Keyring.read_claim_token)
    return await open_mine(request)


def _show(
    request: web.Request, opened: OpenedLink, refusal: ApiError | None = None
) -> web.Response:
    """Return the cancellation page.

    After Unavailable, the page shows an error message. After WrongState it shows none, because the
    reservation's status on the page explains why it could not be cancelled.
    """
    environment, language = request[ENVIRONMENT], language_of(request)
    reservation = opened.reservation
    rule = (opened.venue.policies or {}).get("cancellation")
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
        "access": opened.access_path if opened.is_alive else None,
        "books": takes_bookings(environment),
        "book": f"{environment.prefix}/book",
        "fault": refusal_in_words(refusal, language) if isinstance(refusal, Unavailable) else None,
    }
    return page(request, "guest/cancel.html", values, refusal.status if refusal else 200)
