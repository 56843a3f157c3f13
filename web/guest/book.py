"""The booking page, and the page that shows a booking's status."""

from collections import defaultdict

from aiohttp import web

from appliance.core.errors import (
    ApiError,
    FormUsed,
    ValidationError,
    VenueInactive,
)
from appliance.database.connection import Transaction
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT
from appliance.reservations.by_guest import claim
from appliance.reservations.create import book as book_table
from appliance.reservations.email_queue import was_written_to
from appliance.reservations.model import Reservation
from appliance.reservations.request import Booking
from appliance.reservations.rows import find_reservations, is_claimed
from appliance.venue.model import find_tonight, get_venue, parse_date
from web.guest.booking_form import (
    TRAP,
    BookingForm,
    find_doubt,
    find_errors,
    new_token,
    offer_in_words,
    parse_party,
    read_booking_form,
    read_offer,
    trouble_in_words,
)
from web.guest.card import reservation_page
from web.guest.links import Device, device_for, find_device, keep_device, open_link
from web.guest.responses import (
    BookingLimit,
    emails_are_sent,
    guest_limits_of,
    guest_page,
    language_of,
    page,
    see_other,
    takes_bookings,
)

_DEFAULT_PARTY = 2


@guest_page
async def booking_page(request: web.Request) -> web.Response:
    """`GET /book?date=&guests=`: show the booking form with the free tables."""
    return await _show(request)


@guest_page
async def send_booking(request: web.Request) -> web.Response:
    """`POST /book`: book a table, at most once per form. After an error, show the form again."""
    environment, language = request[ENVIRONMENT], language_of(request)
    if not takes_bookings(environment):
        return await _closed(request)
    try:
        form = await read_booking_form(request, environment, language)
    except ValidationError as refusal:
        return await _show(request, status=refusal.status)
    notice, errors = find_doubt(form, language), find_errors(form.booking, language)
    if notice or errors:
        return await _show(request, form, errors=errors, notice=notice, status=400)
    try:
        device = device_for(request)
        made = await _book(request, environment, form.booking, device)
        return await _redirect(request, made, device)
    except ApiError as refusal:
        return await _show(request, form, refusal=refusal, status=max(refusal.status, 409))


@guest_page
async def booked_page(request: web.Request) -> web.Response:
    """`GET /book/{token}`: show the booking, with a link to the guest pass."""
    opened = await open_link(request, "access")
    environment, device, id_ = request[ENVIRONMENT], find_device(request), opened.reservation.id
    database = environment.database
    # Guests may share the link to this page.
    is_mine = device is not None and await database.read(is_claimed, device.hash, id_)
    writes = emails_are_sent(environment) and await database.read(was_written_to, id_)
    return reservation_page(request, "guest/booked.html", opened, is_mine=is_mine, writes=writes)


async def _book(
    request: web.Request, environment: Environment, booking: Booking, device: Device | None
) -> Reservation:
    """Book a table within the rate limits.

    Raises RateLimited, or an ApiError that says why the booking is not possible.
    """
    limits = guest_limits_of(request)
    of_address, browser = limits.count_booking(request), device.hash.hex() if device else ""

    def book(tx: Transaction) -> Reservation:
        made = book_table(tx, booking)
        return _hold_to(tx, made, [*limits.limits_of_guest(browser, made), of_address])

    return await environment.database.write(book)


def _hold_to(tx: Transaction, made: Reservation, limits: list[BookingLimit]) -> Reservation:
    """Count the reservation for each limit. If one is exceeded, raises its error and counts none.

    Reservations that are cancelled or past do not count.
    """
    tonight = find_tonight(tx).isoformat()
    for limit in limits:
        others = find_reservations(tx, limit.booked - {made.id}).values()
        if sum(other.holds and other.date >= tonight for other in others) >= limit.most:
            raise limit.refusal
    for limit in limits:
        limit.booked.add(made.id)
    return made


async def _redirect(
    request: web.Request, reservation: Reservation, device: Device | None
) -> web.Response:
    """Add the reservation to the browser's "my reservations" and redirect to its page."""
    environment = request[ENVIRONMENT]
    token = environment.keyring.access_token(reservation.id, reservation.link_generation)
    response = see_other(f"{environment.prefix}/book/{token}?lang={language_of(request).code}")
    if device is not None:
        await environment.database.write(claim, reservation.id, device.hash)
        keep_device(request, response, device)
    return response


async def _show(
    request: web.Request,
    form: BookingForm | None = None,
    *,
    errors: dict[str, str] | None = None,
    notice: str | None = None,
    refusal: ApiError | None = None,
    status: int = 200,
) -> web.Response:
    """Return the booking form with the entered values and the tables that are free now."""
    environment, language = request[ENVIRONMENT], language_of(request)
    if not takes_bookings(environment):
        return await _closed(request)
    guests = parse_party(request.query.get("guests", ""), _DEFAULT_PARTY)
    day = parse_date(request.query.get("date"))
    token, when = new_token(environment), ""
    if form is not None:
        guests, day, when = form.booking.guests, form.booking.date, form.typed["when"]
        if not form.is_stale and not isinstance(refusal, FormUsed):
            token = form.typed["token"]
    offer = await environment.database.read(read_offer, day, guests)
    if offer.venue.status != "active" or type(refusal) is VenueInactive:
        return await _closed(request)
    if refusal is not None:
        notice = trouble_in_words(refusal, offer, when, language)
    values: dict[str, object] = {
        **offer_in_words(offer, form, language),
        "booking": form.booking if form else None,
        "typed": form.typed if form else defaultdict(str),
        "errors": defaultdict(str, errors or {}),
        "is_wrong": bool(errors),
        "notice": notice,
        "token": token,
        "trap": TRAP,
        "kept_days": offer.venue.contact_days,
        "action": f"{environment.prefix}/book",
        "mine": f"{environment.prefix}/me" if find_device(request) else None,
    }
    return page(request, "guest/book.html", values, status=status)


async def _closed(request: web.Request) -> web.Response:
    """Return the page that says that the venue takes no online bookings."""
    venue = await request[ENVIRONMENT].database.read(get_venue)
    return page(request, "guest/no_booking.html", {"venue": venue}, status=404)
