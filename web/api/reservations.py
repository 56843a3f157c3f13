"""List, read, create and cancel reservations (interface, sections 2.5 to 2.7 and 4)."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web
from msgspec import UNSET
from msgspec.structs import replace

from appliance.api_keys import ApiKey
from appliance.clock import format_instant, optional_instant
from appliance.core.errors import InvalidDateRange, Unavailable, field_invalid, not_among
from appliance.database.connection import Reader
from appliance.environment import Environment
from appliance.http.request import (
    ENVIRONMENT,
    answer,
    answer_unless_known,
    parse_instant,
    read_object,
)
from appliance.reservations import model
from appliance.reservations.change import Changed, cancel_own, change_own
from appliance.reservations.create import Granted, reserve, settle_email
from appliance.reservations.email_queue import find_email, find_email_outcomes
from appliance.reservations.holds import open_hold, release_hold
from appliance.reservations.request import (
    REFERENCE_MAX,
    Booking,
    parse_booking,
    parse_change,
    parse_hold,
)
from appliance.reservations.rows import get_reservation
from appliance.reservations.search import Wanted, page_found
from appliance.venue.model import get_venue, parse_date
from web.api.authentication import KEY
from web.api.schemas import (
    Cancellation,
    ChangedReservation,
    CreationResult,
    Hold,
    Notifications,
    ReleasedHold,
    Reservation,
    ReservationPage,
    TableName,
    read_id,
    read_query,
    read_whole_number,
)
from web.middleware import SERVICES, Services

_LIMIT_MAX = 200
_LIMIT_DEFAULT = 50
_PAGE_MAX = 2**53
_BLANK_BEFORE_OFFSET = re.compile(r" (?=[0-9]{2}(:?[0-9]{2})?$)")
_FILTERS = ("from", "to", "status", "externalRef", "updatedSince", "page", "limit")


async def list_reservations(request: web.Request) -> web.Response:
    """Return a page of the venue's reservations from all sources.

    Raises InvalidDateRange or ValidationError for an invalid or unknown parameter.
    """
    query = read_query(request, _FILTERS)
    first, last = _optional_date(query, "from"), _optional_date(query, "to")
    if first and last and first > last:
        raise InvalidDateRange(field="from")
    lineage, reference = request[KEY].lineage, query.get("externalRef")
    if reference is not None and not 1 <= len(reference) <= REFERENCE_MAX:
        raise field_invalid("externalRef", "at most {longest} characters.", longest=REFERENCE_MAX)
    wanted = Wanted(
        first,
        last,
        _statuses(query),
        reference=None if reference is None else (lineage, reference),
        updated_since=_optional_instant(query, "updatedSince"),
        order="slot",
    )
    page = read_whole_number(query, "page", 1, _PAGE_MAX)
    limit = read_whole_number(query, "limit", _LIMIT_DEFAULT, _LIMIT_MAX)
    environment = request[ENVIRONMENT]
    found = await environment.database.read(_read_page, environment, wanted, page, limit, lineage)
    return answer_unless_known(request, found)


async def show_reservation(request: web.Request) -> web.Response:
    """Return one reservation from any source, with the same fields as in the list.

    Raises NotFound if there is none.
    """
    id_, lineage = read_id(request.match_info["id"]), request[KEY].lineage
    environment = request[ENVIRONMENT]
    return answer(environment.database.peek(_read_one, environment, id_, lineage))


async def create_reservation(request: web.Request) -> web.Response:
    """Reserve a table, or return the original result if the idempotency key was used before."""
    booking = parse_booking(await read_object(request))
    services, key = request[SERVICES], request[KEY]
    name = (key.lineage, booking.idempotency_key)
    async with services.idempotency_locks.setdefault(name, asyncio.Lock()):
        granted = await _grant_and_notify(services, key, booking)
    body = _creation_result(granted.issued, services.environment)
    if not granted.replayed:
        return answer(body, 201)
    headers = {"Idempotent-Replayed": "true", "Reservation-Status": granted.status}
    if granted.other_body:
        headers["Idempotency-Body-Mismatch"] = "true"
    return answer(body, headers=headers)


async def change_reservation(request: web.Request) -> web.Response:
    """Change a reservation of this key, or do nothing if the idempotency key was used before.

    Raises NotFound for any other id, and the errors of a creation.
    """
    body, id_ = await read_object(request), read_id(request.match_info["id"])
    wanted, since = parse_change(body), parse_instant(body.get("ifUpdatedAt"), "ifUpdatedAt")
    services, key = request[SERVICES], request[KEY]
    async with services.idempotency_locks.setdefault((id_, wanted.idempotency_key), asyncio.Lock()):
        database = services.environment.database
        changed = await database.write(change_own, key, id_, wanted, since)
        if changed.email_id is not None and not changed.replayed:
            await services.email_worker.send_now(changed.email_id)
        answered = database.peek(_read_changed, services.environment, changed, key.lineage)
    headers = {"Idempotent-Replayed": "true"} if changed.replayed else {}
    if changed.other_body:
        headers["Idempotency-Body-Mismatch"] = "true"
    return answer(answered, headers=headers)


async def create_hold(request: web.Request) -> web.Response:
    """Hold tables for a few minutes.

    Raises the errors of a creation that concern the place, and TooManyHolds.
    """
    place, seconds = parse_hold(await read_object(request))
    made = await request[ENVIRONMENT].database.write(open_hold, request[KEY], place, seconds)
    return answer(Hold(hold_id=made.id, expires_at=format_instant(made.expires_at)), 201)


async def delete_hold(request: web.Request) -> web.Response:
    """Release a hold. Raises NotFound if it has expired or belongs to another lineage."""
    hold_id = read_id(request.match_info["id"])
    await request[ENVIRONMENT].database.write(release_hold, request[KEY], hold_id)
    return answer(ReleasedHold(hold_id=hold_id, released=True))


async def cancel_reservation(request: web.Request) -> web.Response:
    """Cancel a reservation created with this key or with a key it replaced.

    Raises NotFound for any other id, and ValidationError for an invalid `notifyCustomer` or an
    unknown parameter.
    """
    notify = read_query(request, ("notifyCustomer",)).get("notifyCustomer", "true")
    if notify not in {"true", "false"}:
        raise field_invalid("notifyCustomer", "true or false expected.")
    cancelled = await request[ENVIRONMENT].database.write(
        cancel_own, request[KEY], read_id(request.match_info["id"]), notify=notify == "true"
    )
    reservation = cancelled.reservation
    return answer(
        Cancellation(
            service_reservation_id=reservation.id,
            status=reservation.status,
            cancelled_at=format_instant(reservation.cancelled_at or reservation.updated_at),
            already_cancelled=cancelled.already or UNSET,
        )
    )


def _optional_date(query: Mapping[str, str], name: str) -> str | None:
    if name in query and parse_date(query[name]) is None:
        raise InvalidDateRange(field=name)
    return query.get(name)


def _optional_instant(query: Mapping[str, str], name: str) -> int | None:
    """Return an instant in ms since 1970. Before the offset, a blank is a `+` that is not encoded.

    Raises ValidationError if it is invalid.
    """
    value = query.get(name)
    return parse_instant(value and _BLANK_BEFORE_OFFSET.sub("+", value), name)


def _statuses(query: Mapping[str, str]) -> tuple[str, ...]:
    if "status" not in query:
        return ()
    names = tuple(dict.fromkeys(query["status"].split(",")))
    if not all(name in model.STATUSES for name in names):
        raise not_among("status", model.STATUSES)
    return names


def _read_page(
    reader: Reader, environment: Environment, wanted: Wanted, page: int, limit: int, lineage: str
) -> ReservationPage:
    """Return a page, with contact details if the venue allows this (interface, section 4)."""
    shows_contacts = get_venue(reader).shows_contacts
    found, total = page_found(reader, wanted, page, limit)
    items = _list_items(reader, environment, found, lineage)
    return ReservationPage(items, page, limit, total, contact_details_included=shows_contacts)


def _list_items(
    reader: Reader, environment: Environment, reservations: Sequence[model.Reservation],
    lineage: str,
) -> list[Reservation]:  # fmt: skip
    """Return the fields that a key of `lineage` may see (interface, section 2.5)."""
    shows_contacts = get_venue(reader).shows_contacts
    emails = find_email_outcomes(reader, reservations)
    instants = model.find_instants(reader, reservations)

    def describe(each: model.Reservation, starts_at: int, ends_at: int) -> Reservation:
        own = each.lineage == lineage
        access_url, claim_url = _links_of(environment, each.id, each.link_generation)
        tables = [TableName(id=id_, name=name) for id_, name in each.tables]
        email = emails.get(each.id) or each.email_outcome or "skipped"
        return Reservation.of(
            each,
            table=tables[0],
            tables=tables,
            checked_in_at=optional_instant(each.checked_in_at),
            late_at=optional_instant(each.late_at),
            no_show=bool(each.no_show),
            starts_at=format_instant(starts_at),
            ends_at=format_instant(ends_at),
            created_at=format_instant(each.created_at),
            updated_at=format_instant(each.updated_at),
            created_by_this_key=own,
            cancelled_by=each.cancelled_by or UNSET,
            notifications=Notifications(email=email, sms="skipped") if own else UNSET,
            external_ref=(own and each.external_ref) or UNSET,
            guest_access_url=access_url if own else UNSET,
            claim_url=claim_url if own else UNSET,
            customer_email=each.customer_email if shows_contacts else UNSET,
            customer_phone=each.customer_phone if shows_contacts else UNSET,
        )

    return [describe(each, *when) for each, when in zip(reservations, instants, strict=True)]


def _links_of(environment: Environment, *link: Any) -> tuple[str, str]:
    """Return the `guestAccessUrl` and the `claimUrl` for a reservation's id and link generation."""
    keyring, links = environment.keyring, environment.links
    return links.access(keyring.access_token(*link)), links.claim(keyring.claim_token(*link))


def _read_one(
    reader: Reader, environment: Environment, reservation_id: str, lineage: str
) -> Reservation:
    found = get_reservation(reader, reservation_id)
    (item,) = _list_items(reader, environment, [found], lineage)
    return item


def _read_changed(
    reader: Reader, environment: Environment, changed: Changed, lineage: str
) -> ChangedReservation:
    found = changed.reservation
    email = changed.email_id and find_email(reader, changed.email_id)
    sent = "skipped" if not email else "sent" if email.state in {"sent", "kept"} else "failed"
    return ChangedReservation.of(
        _read_one(reader, environment, found.id, lineage),
        service_reservation_id=found.id,
        notifications=Notifications(email=sent, sms="skipped"),
    )


async def _grant_and_notify(services: Services, key: ApiKey, booking: Booking) -> Granted:
    """Reserve a table. If the customer should get an email, send it and store the outcome.

    If the mail server does not accept the email within 5 s, the outcome is `failed`.
    """
    environment = services.environment
    granted = await environment.database.write(reserve, environment.name, key, booking)
    if granted.email_id is None or granted.issued.email_outcome is not None:
        return granted
    outcome = await services.email_worker.send_now(granted.email_id)
    try:
        settled = await environment.database.write(settle_email, granted.issued, outcome)
    except Unavailable:  # without a stored outcome, a replay returns `failed` too
        settled = replace(granted.issued, email_outcome="failed")
    return Granted(settled, replayed=False)


def _creation_result(issued: model.Issued, environment: Environment) -> CreationResult:
    """Return the response to a booking and its replays (interface, section 2.7)."""
    urls = _links_of(environment, issued.reservation_id, issued.link_generation)
    return CreationResult(
        service_reservation_id=issued.reservation_id,
        access_code=issued.access_code,
        status="confirmed",
        guest_access_url=urls[0],
        claim_url=urls[1],
        access_link_expires_at=format_instant(issued.link_expires_at),
        notifications=Notifications(email=issued.email_outcome or "failed", sms="skipped"),
    )
