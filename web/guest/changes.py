"""What guests change by themselves from their link: cancel, come late, come with fewer."""

from contextlib import suppress
from typing import Literal

from aiohttp import web

from appliance.core.errors import Unavailable, ValidationError, WrongState
from appliance.http.request import ENVIRONMENT
from appliance.reservations.by_guest import cancel_by_guest, come_with_fewer, tell_late
from web.guest.booking_form import parse_party
from web.guest.card import reservation_page
from web.guest.links import open_link
from web.guest.responses import DeadLink, guest_page, language_of, see_other
from web.portal.forms import read_form


@guest_page
async def change_page(request: web.Request) -> web.Response:
    """`GET|POST /access/{token}/change`: show what may change without a call, or change it.

    The form's `late` is `1` or `0`; without it, `guests` is the new number of guests. What it is
    too late for is shown with the number to call.
    """
    opened, refusal = await open_link(request, "access"), None
    if request.method == "POST":
        id_, database = opened.reservation.id, request[ENVIRONMENT].database
        try:
            form = await read_form(request)
            if late := form.text("late"):
                await database.write(tell_late, id_, late=late == "1")
            else:
                await database.write(come_with_fewer, id_, parse_party(form.text("guests"), 0))
        except (ValidationError, WrongState, Unavailable) as error:
            refusal = error
        else:
            language = language_of(request).code
            return see_other(f"{opened.access_path}/change?lang={language}&done=1")
    return reservation_page(request, "guest/change.html", opened, refusal)


@guest_page
async def cancel_page(request: web.Request) -> web.Response:
    """`GET|POST …/cancel`: show the cancellation deadline and a button, or cancel.

    A second POST has no effect. After Unavailable, the page shows an error message. After
    WrongState it shows none, because the reservation's status on the page explains why it could not
    be cancelled.
    """
    kind: Literal["access", "claim"] = "claim" if "/claim-guest/" in request.path else "access"
    opened, refusal = await open_link(request, kind), None
    if request.method == "POST":
        database = request[ENVIRONMENT].database
        try:
            await database.write(cancel_by_guest, opened.reservation.id)
        except (WrongState, Unavailable) as error:
            refusal = error
        with suppress(DeadLink):  # if the link has just expired, show the state read above
            opened = await open_link(request, kind)
    shown = refusal if isinstance(refusal, Unavailable) else None
    response = reservation_page(request, "guest/cancel.html", opened, shown)
    response.set_status(refusal.status if refusal else 200)
    return response
