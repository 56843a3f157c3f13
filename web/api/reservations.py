"""`/v1/reservations`: list, create, cancel (interface, sections 2.5 to 2.7 and 4)."""

from dataclasses import replace

from aiohttp import web

from appliance.api_keys import ApiKey
from appliance.core.errors import NotFound, Unavailable
from appliance.database.connection import Reader
from appliance.http.request import ENVIRONMENT, answer, read_object
from appliance.reservations.change import cancel_own
from appliance.reservations.create import Granted, reserve, settle_email
from appliance.reservations.model import Reservation
from appliance.reservations.request import Booking, parse_booking, parse_uuid
from appliance.reservations.search import Wanted, page_found
from appliance.venue.rows import get_venue
from web.api.authentication import KEY
from web.api.query import ReservationQuery, read_notify_customer, read_reservation_query
from web.api.wire import ReservationPage, cancellation_answer, creation_answer, reservation_answer
from web.middleware import SERVICES, Services


async def list_reservations(request: web.Request) -> web.Response:
    """Return a page of the venue's reservations from every source."""
    query, key = read_reservation_query(request), request[KEY]
    shows_contacts, items, total = await request[ENVIRONMENT].database.read(_read_page, query)
    return answer(
        ReservationPage(
            items=[
                reservation_answer(item, lineage=key.lineage, shows_contacts=shows_contacts)
                for item in items
            ],
            page=query.page,
            limit=query.limit,
            total=total,
            contact_details_included=shows_contacts,
        )
    )


async def create_reservation(request: web.Request) -> web.Response:
    """Reserve a table, or return the original result for a replayed idempotency key."""
    booking = parse_booking(await read_object(request))
    services, key = request[SERVICES], request[KEY]
    async with services.turns.take((key.lineage, booking.idempotency_key)):
        granted = await _grant_and_notify(services, key, booking)
    body = creation_answer(granted.issued, services.environment)
    if not granted.replayed:
        return answer(body, 201)
    headers = {"Idempotent-Replayed": "true", "Reservation-Status": granted.status}
    if granted.other_body:
        headers["Idempotency-Body-Mismatch"] = "true"
    return answer(body, headers=headers)


async def cancel_reservation(request: web.Request) -> web.Response:
    """Cancel a reservation that this key's lineage created."""
    notify = read_notify_customer(request)
    reservation_id = parse_uuid(request.match_info["id"])
    if reservation_id is None:
        raise NotFound
    cancelled = await request[ENVIRONMENT].database.write(
        cancel_own, request[KEY], reservation_id, notify=notify
    )
    return answer(cancellation_answer(cancelled))


async def _grant_and_notify(services: Services, key: ApiKey, booking: Booking) -> Granted:
    """Reserve. If an email is due, wait up to 5 s for its first attempt and store the result."""
    environment = services.environment
    granted = await environment.database.write(reserve, environment.name, key, booking)
    if granted.letter_id is None or granted.issued.email_outcome is not None:
        return granted
    outcome = await services.email_worker.send_now(granted.letter_id)
    try:
        settled = await environment.database.write(settle_email, granted.issued, outcome)
    except Unavailable:  # the booking is committed: answer as a replay would
        settled = replace(granted.issued, email_outcome="failed")
    return Granted(settled, replayed=False)


def _read_page(reader: Reader, query: ReservationQuery) -> tuple[bool, list[Reservation], int]:
    wanted = Wanted(query.first, query.last, query.statuses, order="slot")
    items, total = page_found(reader, wanted, query.page, query.limit)
    return get_venue(reader).shows_contacts, items, total
