"""The page `/portal/integrations/deliveries`: webhook deliveries and replays."""

import hashlib
from contextlib import suppress
from dataclasses import replace

from aiohttp import web

from appliance.core.errors import (
    ApiError,
    InvalidWebhookUrl,
    NotFound,
    field_invalid,
)
from appliance.database.connection import Reader
from appliance.door.guest_pass import parse_access_code
from appliance.http.request import ENVIRONMENT
from appliance.reservations.request import parse_uuid
from appliance.reservations.rows import find_by_access_code, find_reservation
from appliance.webhooks.client import USER_AGENT
from appliance.webhooks.deliveries import STATES
from appliance.webhooks.delivery_log import (
    DeliveryFilter,
    DeliveryStory,
    Selection,
    get_delivery_story,
    get_listed_delivery,
    page_deliveries,
    replay_delivery,
    replay_selected,
)
from appliance.webhooks.endpoints import Endpoint, get_endpoint, list_endpoints
from appliance.webhooks.payload import event_body, sample_body
from appliance.webhooks.url_policy import parse_target_url
from web.portal.forms import Form
from web.portal.guard import id_of
from web.portal.integrations import integrations_page
from web.portal.responses import REFUSED, see_other

_FIELDS = ("find", "endpoint", "state")
_SOON_MS = 15_000


async def show_deliveries(request: web.Request) -> web.Response:
    """`GET …/deliveries`: show a page of the delivery log, newest events first."""
    database, form = request[ENVIRONMENT].database, Form(request.query)
    asked = {name: form.text(name) for name in _FIELDS}
    chosen = DeliveryFilter(reservation_id="")  # this value matches no delivery
    try:
        chosen = DeliveryFilter(_endpoint_id(form), form.one_of("state", ("", *STATES)) or None)
    except ApiError as refusal:
        request[REFUSED] = refusal  # shown at its field, with the submitted filters
    if asked["find"] and REFUSED not in request:
        delivery_id, reservation_id = await database.read(_find, asked["find"])
        if delivery_id is not None:
            return see_other(request, f"/integrations/deliveries/{delivery_id}")
        chosen = replace(chosen, reservation_id=reservation_id or "")  # "" matches no delivery
    before = parse_uuid(request.query.get("before"))
    found = await database.read(page_deliveries, chosen, before)
    entered = {name: value for name, value in asked.items() if value}
    here = request.rel_url.with_query(entered)
    values: dict[str, object] = {
        "deliveries": found.deliveries,
        "asked": asked,
        "is_asked": bool(entered),
        "endpoints": await database.read(list_endpoints),
        "states": STATES,
        "older": found.older and here.update_query(before=found.older),
        "newest": before and here,
    }
    return integrations_page(request, "deliveries", values)


def _endpoint_id(form: Form) -> str | None:
    text = form.text("endpoint")
    if text and parse_uuid(text) is None:
        raise field_invalid("endpoint", "please give one of the list.")
    return parse_uuid(text)


def _find(reader: Reader, text: str) -> tuple[str | None, str | None]:
    """Find a delivery by its id, or a reservation by its id or access code.

    Return (delivery id, reservation id). At most one of them is not None.
    """
    found_id, code = parse_uuid(text), parse_access_code(text)
    if found_id is None:
        reservation = None if code is None else find_by_access_code(reader, code)
    else:
        with suppress(NotFound):
            return get_listed_delivery(reader, found_id)[1].id, None
        reservation = find_reservation(reader, found_id)
    return None, None if reservation is None else reservation.id


async def show_delivery(request: web.Request) -> web.Response:
    """`GET …/deliveries/{id}`: show a delivery's attempts and request.

    `?part=1` returns them without the surrounding page.
    """
    values = await request[ENVIRONMENT].database.read(_read_delivery, id_of(request))
    return integrations_page(request, "story" if "part" in request.query else "delivery", values)


def _read_delivery(reader: Reader, delivery_id: str) -> dict[str, object]:
    story = get_delivery_story(reader, delivery_id)
    delivery, endpoint = story.delivery, get_endpoint(reader, story.delivery.endpoint_id)
    due_soon = delivery.due_at < reader.now + _SOON_MS
    return {
        "delivery": delivery,
        "attempts": story.attempts,
        "endpoint": endpoint,
        "request": _request_text(reader, story, endpoint),
        "is_moving": delivery.state == "pending" and due_soon and endpoint.active,
    }


def _request_text(reader: Reader, story: DeliveryStory, endpoint: Endpoint) -> dict[str, object]:
    """Return the text of the latest failed request, or else of the request as it would be sent now.

    Its `kind` is one of:

    - `sent`: this is the failed request that was sent at `at` (ms since 1970).
    - `gone`: there is no text, because the reservation no longer exists.
    - `same`: this is the request as it would be sent now, and its body equals the delivered body.
    - `now`: this is the request as it would be sent now, and its body differs from every delivered
      body.
    - `next`: this is the next request, and nothing has been delivered yet.

    For the last three kinds, the template itself writes the headers, based on `receiver`.
    """
    if story.failed_request is not None:
        at, request = story.failed_request
        head, _, body = request.partition(b"\r\n\r\n")
        return {
            "kind": "sent",
            "at": at,
            "head": _text(head).replace("\r\n", "\n"),
            "body": _text(body),
        }
    reservation_id = story.delivery.reservation_id
    if reservation_id is None:
        body = sample_body(reader, story.due)
    elif (reservation := find_reservation(reader, reservation_id)) is not None:
        body = event_body(reader, story.due, reservation, endpoint)
    else:
        return {"kind": "gone"}
    digests = {attempt.body_sha256 for attempt in story.attempts if attempt.outcome == "delivered"}
    kind = "same" if hashlib.sha256(body).digest() in digests else "now"
    if not (digests or story.delivery.replays or story.delivery.state == "delivered"):
        kind = "next"
    receiver = None
    with suppress(InvalidWebhookUrl):
        receiver = parse_target_url(story.delivery.endpoint_url, allow_http=True)
    return {"kind": kind, "receiver": receiver, "agent": USER_AGENT, "length": len(body),
            "body": _text(body)}  # fmt: skip


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


async def replay_one(request: web.Request, _form: Form) -> web.Response:
    """`POST …/deliveries/{id}/replay`: queue a delivery again.

    Sending the same form again has no effect.
    """
    delivery_id = id_of(request)
    replayed = await request[ENVIRONMENT].database.write(replay_delivery, delivery_id)
    note = "replayed" if replayed else "replayed-anyway"
    return see_other(request, f"/integrations/deliveries/{delivery_id}", note)


async def replay_dead(request: web.Request, _form: Form) -> web.Response:
    """`POST …/endpoints/{id}/replay`: queue all deliveries again that were given up."""
    await replay_selected(request[ENVIRONMENT].database, Selection(id_of(request)))
    return see_other(request, f"/integrations/deliveries?endpoint={id_of(request)}", "replayed-all")
