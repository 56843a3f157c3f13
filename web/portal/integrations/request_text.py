"""The request of a delivery as text: as it was sent where that is kept, else as it would be now."""

import hashlib
from dataclasses import dataclass

from appliance.errors import InvalidWebhookUrl
from appliance.store.connection import Reader
from appliance.store.delivery_attempts import DeliveryStory
from appliance.store.endpoints import get_endpoint
from appliance.store.reservations import find_reservation
from appliance.store.venue import get_venue
from appliance.webhooks.client import USER_AGENT
from appliance.webhooks.event_body import event_body
from appliance.webhooks.receiver import parse_receiver


@dataclass(frozen=True, slots=True)
class RequestText:
    """`kind`: `sent` as it went at `at`, `gone` nothing, the others as it would go now.

    `same` says that the body is, byte for byte, the one that was delivered; `next` that none was.
    """

    kind: str
    at: int | None = None
    head: str = ""
    body: str = ""


def request_text(reader: Reader, story: DeliveryStory) -> RequestText:
    """The latest failed request, else the present body under the headers that are known."""
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
    """The headers without their signature: it is made anew at each attempt."""
    delivery = story.delivery
    try:
        receiver = parse_receiver(delivery.endpoint_url, allow_http=True)
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
