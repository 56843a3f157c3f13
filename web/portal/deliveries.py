"""Deliveries: the log with filters, attempts, requests, and replays."""

import hashlib
import re
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from datetime import datetime, timedelta, tzinfo

from aiohttp import web
from yarl import URL

from appliance.core.errors import InvalidDate, InvalidWebhookUrl, NotFound
from appliance.database.connection import Reader
from appliance.door.guest_pass import parse_access_code
from appliance.http.request import ENVIRONMENT
from appliance.outbox import EVENT_TYPES, EXTRA_TYPES
from appliance.reservations.request import parse_uuid
from appliance.reservations.rows import find_by_access_code, find_reservation
from appliance.venue.rows import get_venue
from appliance.webhooks.client import USER_AGENT
from appliance.webhooks.deliveries import STATES
from appliance.webhooks.delivery_log import (
    DeliveryFilter,
    DeliveryStory,
    Place,
    Progress,
    Selection,
    count_deliveries,
    get_delivery_story,
    get_listed_delivery,
    page_deliveries,
    replay_deliveries,
    replay_delivery,
)
from appliance.webhooks.endpoints import get_endpoint, list_endpoints
from appliance.webhooks.payload import event_body
from appliance.webhooks.url_policy import parse_target_url
from web.portal.forms import Form, asked_number, field_error
from web.portal.guard import id_of
from web.portal.integrations import room_page
from web.portal.responses import find_zone, refused_on, see_other

WHICH = {"dead": ("dead",), "lost": ("dead", "cancelled"), "all": STATES}
_FOREVER = 2**62
_PLACE = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")


def read_filter(form: Form, zone: tzinfo) -> DeliveryFilter:
    """Return `endpoint`, `state`, `type`, `from`, `to` (inclusive). Raises ValidationError."""
    return DeliveryFilter(
        endpoint_id=_endpoint_id(form),
        state=form.one_of("state", ("", *STATES)) or None,
        event_type=form.one_of("type", ("", *EVENT_TYPES, *EXTRA_TYPES)) or None,
        since=_instant(form, "from", zone),
        until=_instant(form, "to", zone, days=1),
    )


def find_sought(reader: Reader, text: str) -> tuple[str | None, str | None]:
    """Return (delivery id, reservation id) for an id or an access code."""
    found_id, code = parse_uuid(text), parse_access_code(text)
    if found_id is None:
        reservation = None if code is None else find_by_access_code(reader, code)
    else:
        with suppress(NotFound):
            return get_listed_delivery(reader, found_id)[1].id, None
        reservation = find_reservation(reader, found_id)
    return None, None if reservation is None else reservation.id


def read_place(text: str) -> Place | None:
    """Return the page position from `12.34`, else None (the beginning)."""
    found = _PLACE.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None


def read_period(form: Form, zone: tzinfo) -> Selection | None:
    """Return `endpoint`, `which`, and the minutes from `from` to `until` (exclusive).

    None until an endpoint is chosen.
    """
    endpoint_id, which = _endpoint_id(form), form.one_of("which", ("", *WHICH)) or "dead"
    first, last = (_instant(form, name, zone, "%Y-%m-%dT%H:%M") for name in ("from", "until"))
    if endpoint_id is None:
        return None
    return Selection(endpoint_id, WHICH[which], first or 0, _FOREVER if last is None else last)


def _endpoint_id(form: Form) -> str | None:
    text = form.text("endpoint")
    if text and parse_uuid(text) is None:
        raise field_error("endpoint", "une adresse de la liste.", "one of the list.")
    return parse_uuid(text)


def _instant(
    form: Form, name: str, zone: tzinfo, written: str = "%Y-%m-%d", days: int = 0
) -> int | None:
    """Return the start of the field's day or minute plus `days` in venue time, ms since 1970."""
    text = form.text(name)
    if not text:
        return None
    try:
        begins = datetime.strptime(text[:16], written).replace(tzinfo=zone) + timedelta(days=days)
        return round(begins.timestamp() * 1000)
    except (OverflowError, ValueError):
        raise InvalidDate(field="date") from None


@dataclass(frozen=True, slots=True)
class RequestText:
    """The request of a delivery as text.

    `kind`: `sent` (as sent at `at`), `gone` (no reservation), or as it would be sent now: `same`
    (the delivered body, byte for byte), `now` (another body), `next` (none delivered yet).
    """

    kind: str
    at: int | None = None
    head: str = ""
    body: str = ""


def request_text(reader: Reader, story: DeliveryStory) -> RequestText:
    """Return the latest failed request, else the current body with the known headers."""
    if story.failed_request is not None:
        at, request = story.failed_request
        head, _, body = request.partition(b"\r\n\r\n")
        return RequestText("sent", at, _text(head).replace("\r\n", "\n"), _text(body))
    reservation_id = story.delivery.reservation_id
    reservation = None if reservation_id is None else find_reservation(reader, reservation_id)
    if reservation_id is not None and reservation is None:
        return RequestText("gone")
    endpoint = get_endpoint(reader, story.delivery.endpoint_id)
    body = event_body(story.due, reservation, get_venue(reader), endpoint)
    digests = {attempt.body_sha256 for attempt in story.attempts if attempt.outcome == "delivered"}
    kind = "same" if hashlib.sha256(body).digest() in digests else "now"
    if not (digests or story.delivery.replays or story.delivery.state == "delivered"):
        kind = "next"
    return RequestText(kind, None, _head(story, len(body)), _text(body))


def _head(story: DeliveryStory, length: int) -> str:
    """Return the headers without the signature, which changes with each attempt."""
    delivery = story.delivery
    try:
        receiver = parse_target_url(delivery.endpoint_url, allow_http=True)
    except InvalidWebhookUrl:
        first = [f"POST {delivery.endpoint_url} HTTP/1.1"]
    else:
        first = [f"POST {receiver.target} HTTP/1.1", f"Host: {receiver.authority}"]
    return "\n".join(
        (
            *first,
            f"User-Agent: {USER_AGENT}",
            "Accept: */*",
            "Accept-Encoding: identity",
            "Content-Type: application/json",
            f"X-Service-Event: {delivery.event_type}",
            f"X-Service-Delivery: {delivery.id}",
            f"Content-Length: {length}",
        )
    )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


_FIELDS = ("find", "endpoint", "state", "type", "from", "to")
_PERIOD = ("endpoint", "which", "from", "until")
_SOON_MS = 15_000


async def show_deliveries(request: web.Request) -> web.Response:
    """`GET …/deliveries`: a page of the log, newest event first."""
    database = request[ENVIRONMENT].database
    form = Form(request.query)
    asked = {name: form.text(name) for name in _FIELDS}
    chosen = read_filter(form, database.peek(find_zone))
    if asked["find"]:
        delivery_id, reservation_id = await database.read(find_sought, asked["find"])
        if delivery_id is not None:
            return see_other(request, f"/integrations/deliveries/{delivery_id}")
        chosen = replace(chosen, reservation_id=reservation_id or "")  # unknown: no match
    before = read_place(request.query.get("before", ""))
    found = await database.read(page_deliveries, chosen, before)
    kept = {name: value for name, value in asked.items() if value}
    here = URL(request.path).with_query(kept)
    values: dict[str, object] = {
        "deliveries": found.deliveries,
        "asked": asked,
        "is_asked": bool(kept),
        "endpoints": await database.read(list_endpoints),
        "states": STATES,
        "event_types": (*EVENT_TYPES, *EXTRA_TYPES),
        "older": found.older and here.update_query(before="{}.{}".format(*found.older)),
        "newest": before and here,
    }
    return room_page(request, "deliveries", values)


async def show_delivery(request: web.Request) -> web.Response:
    """`GET …/deliveries/{id}`: attempts and request; with `?part=1` only these."""
    values = await request[ENVIRONMENT].database.read(_read, id_of(request))
    return room_page(request, "story" if "part" in request.query else "delivery", values)


@refused_on(show_delivery)
async def replay_one(request: web.Request, _form: Form) -> web.Response:
    """`POST …/deliveries/{id}/replay`: start one new attempt; a repeated form has no effect."""
    delivery_id = id_of(request)
    replayed = await request[ENVIRONMENT].database.write(replay_delivery, delivery_id)
    note = "replayed" if replayed else "replayed-anyway"
    return see_other(request, f"/integrations/deliveries/{delivery_id}", note)


async def ask_replay(request: web.Request) -> web.Response:
    """`GET …/replay`: choose deliveries, with their number; `?replayed=` is how many were sent."""
    database = request[ENVIRONMENT].database
    form = Form(request.query)
    selection = read_period(form, database.peek(find_zone))
    endpoints = await database.read(list_endpoints)
    values: dict[str, object] = {
        "asked": {name: form.text(name) for name in _PERIOD},
        "selection": selection,
        "endpoints": endpoints,
        "endpoint": next((e for e in endpoints if e.id == form.text("endpoint")), None),
        "count": selection and await database.read(count_deliveries, *astuple(selection)),
        "replayed": asked_number(request, "replayed", None),
    }
    return room_page(request, "replay", values)


@refused_on(ask_replay)
async def replay_many(request: web.Request, form: Form) -> web.Response:
    """`POST …/replay`: replay page by page, one transaction each; a repeated form has no effect."""
    database = request[ENVIRONMENT].database
    selection = read_period(form, database.peek(find_zone))
    if selection is None:
        raise field_error("endpoint", "une adresse de la liste.", "one of the list.")
    progress: Progress | None = None
    while progress is None or not progress.done:
        progress = await database.write(replay_deliveries, selection, progress)
    query = {"endpoint": selection.endpoint_id, "replayed": str(progress.replayed)}
    return see_other(request, str(URL("/integrations/replay").with_query(query)))


def _read(reader: Reader, delivery_id: str) -> dict[str, object]:
    story = get_delivery_story(reader, delivery_id)
    delivery, endpoint = story.delivery, get_endpoint(reader, story.delivery.endpoint_id)
    due_soon = delivery.due_now or delivery.due_at < reader.now + _SOON_MS
    return {
        "delivery": delivery,
        "attempts": story.attempts,
        "endpoint": endpoint,
        "request": request_text(reader, story),
        "is_moving": delivery.state == "pending" and due_soon and endpoint.active,
    }
