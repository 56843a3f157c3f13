"""Structs for the objects that the partner API returns, and parsers for ids and query strings.

`web.api.openapi` generates the response schemas from these structs and the descriptions in
openapi.md. Request bodies are parsed by hand, because each error has a documented code and field.
Their schemas are in openapi.md.
"""
# ruff: noqa: D101 - openapi.md describes each object and member

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType, field

from appliance.core.errors import NotFound, field_invalid
from appliance.reservations.request import REFERENCE_MAX, parse_uuid
from appliance.webhooks.delivery_log import PAGE


def _json(**schema: object) -> Meta:
    return Meta(extra_json_schema=schema)


def _ref(name: str) -> Meta:
    return _json(**{"$ref": f"#/components/schemas/{name}"})


Uuid = Annotated[str, _json(format="uuid")]
Uri = Annotated[str, _json(format="uri")]
VenueDate = Annotated[str, _json(format="date", examples=["2026-11-21"])]
SlotTime = Annotated[
    str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["19:30"])
]  # fmt: skip
Instant = Annotated[str, _json(format="date-time")]
AccessCode = Annotated[str, Meta(pattern="^SVC-[2-9A-HJKMNP-Z]{4}$", examples=["SVC-7KQ4"])]
Whole = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Status = Annotated[str, _ref("ReservationStatus")]
Source = Annotated[str, _ref("ReservationSource")]
DeliveredEventType = Annotated[str, _ref("DeliveredEventType")]
CancelledBy = Annotated[str, _json(enum=["guest", "venue", "partner"])]
Reference = Annotated[str, Meta(min_length=1, max_length=REFERENCE_MAX)]


def read_query(request: web.Request, allowed: Sequence[str]) -> dict[str, str]:
    """Return the query parameters. A repeated parameter's values are joined with commas.

    Only `status` accepts a comma-separated list. Other parameters reject the joined value, except
    `externalRef`, which may contain a comma. Raises ValidationError if a name is not in `allowed`:
    if a misspelt filter were ignored, the call would return everything.
    """
    for name in request.query:
        if name not in allowed:
            raise field_invalid(
                name, "unknown parameter; expected: {allowed}.", allowed=", ".join(allowed)
            )
    return {name: ",".join(request.query.getall(name)) for name in request.query}


def read_id(text: str) -> str:
    """Return the UUID `text` in lower case. Raises NotFound if it is not a UUID."""
    uuid = parse_uuid(text)
    if uuid is None:
        raise NotFound
    return uuid


def read_whole_number(query: Mapping[str, str], name: str, default: int, largest: int) -> int:
    """Return a whole number from 1 to `largest`. Raises ValidationError for anything else."""
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= 16 and 1 <= int(text) <= largest):
        raise field_invalid(name, "a whole number from 1 to {largest}.", largest=largest)
    return int(text)


class Answer(Struct, rename="camel"):
    """An object in a response. Its schema allows other members, as later versions may add some."""

    @classmethod
    def of(cls, row: object, **others: Any) -> Self:
        """Build the object from `others`, and from attributes of `row` for the remaining fields."""
        for name in cls.__struct_fields__:
            if name not in others:
                others[name] = getattr(row, name)
        return cls(**others)


class Error(Answer, rename=None):
    """The body of every error, created by `ApiError.body`."""

    error: str
    error_en: str
    code: Annotated[str, _ref("ErrorCode")]
    field: Annotated[str, Meta(examples=["customer.email"])] | UnsetType = UNSET


class VenueIdentity(Answer):
    id: Uuid
    name: str
    slug: str
    status: Annotated[str, _json(enum=["active", "inactive", "suspended"])]


class Table(Answer):
    id: Uuid
    name: str
    number: Annotated[str, Meta(examples=["T1"])]
    capacity_min: Positive
    capacity_max: Positive
    minimum_spend: Whole
    type: Annotated[str, Meta(examples=["standard", "vip", "booth", "bar", "terrace"])]
    bookable: bool


class Slot(Answer):
    id: str
    name: str
    start: SlotTime
    end: SlotTime
    days_of_week: Annotated[
        tuple[Annotated[int, Meta(ge=0, le=6)], ...], _json(uniqueItems=True)
    ]  # fmt: skip


class Venue(Answer):
    venue: VenueIdentity
    reservation_mode: Annotated[str, _json(enum=["prepaid", "free"])]
    auto_confirm: bool
    request_expiry_hours: Whole
    tables: list[Table]
    slots: list[Slot]
    closed_dates: list[VenueDate]
    bookable_until: VenueDate
    policies: Annotated[dict[str, Any], _json(additionalProperties=True)] | None
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$", examples=["MAD"])]
    time_zone: Annotated[str, Meta(examples=["Africa/Casablanca"])]
    utc_offset: Annotated[str, Meta(pattern="^[+-][0-9]{2}:[0-9]{2}$", examples=["+00:00"])]
    evening_ends: SlotTime
    tonight: VenueDate


class TableAvailability(Answer):
    id: Uuid
    name: str
    available: bool
    blocked_by: Annotated[str, _json(enum=["platform", "partner", "manual"])] | None


class Availability(Answer):
    date: VenueDate
    slot: SlotTime | None
    tables: list[TableAvailability]


class FreeSlot(Answer):
    slot: SlotTime
    free: list[Uuid]


class FreeDay(Answer):
    date: VenueDate
    closed: bool
    slots: list[FreeSlot]


class AvailabilityRange(Answer):
    from_: VenueDate = field(name="from")
    to: VenueDate
    days: Annotated[list[FreeDay], Meta(max_length=62)]


class VenueName(Answer):
    id: Uuid
    name: str


class Key(Answer):
    environment: Annotated[str, _json(enum=["live", "test"])]
    scopes: tuple[str, ...]
    name: str
    venue: VenueName
    created_at: Instant


class TableName(Answer):
    id: Uuid
    name: str


class Notifications(Answer):
    email: Annotated[str, _json(enum=["sent", "failed", "skipped"])]
    sms: Annotated[str, _json(const="skipped")]


class Reservation(Answer):
    id: Uuid
    access_code: AccessCode | None
    status: Status
    date: VenueDate
    slot: SlotTime | None
    table: TableName
    tables: list[TableName]
    guests: Positive
    customer_first_name: str | None
    source: Source
    checked_in_at: Instant | None
    late_at: Instant | None
    no_show: bool
    starts_at: Instant
    ends_at: Instant
    created_at: Instant
    updated_at: Instant
    created_by_this_key: bool
    cancelled_by: CancelledBy | UnsetType = UNSET
    notifications: Notifications | UnsetType = UNSET
    external_ref: Reference | UnsetType = UNSET
    guest_access_url: Uri | UnsetType = UNSET
    claim_url: Uri | UnsetType = UNSET
    customer_email: str | UnsetType | None = UNSET
    customer_phone: str | UnsetType | None = UNSET


class ReservationPage(Answer):
    items: Annotated[list[Reservation], Meta(max_length=200)]
    page: Positive
    limit: Annotated[int, Meta(ge=1, le=200)]
    total: Whole
    contact_details_included: bool


class CreationResult(Answer):
    service_reservation_id: Uuid
    access_code: AccessCode
    status: Annotated[str, _json(const="confirmed")]
    guest_access_url: Uri
    claim_url: Uri
    access_link_expires_at: Instant
    notifications: Notifications


class ChangedReservation(Reservation, kw_only=True):
    service_reservation_id: Uuid


class Hold(Answer):
    hold_id: Uuid
    expires_at: Instant


class ReleasedHold(Answer):
    hold_id: Uuid
    released: Annotated[bool, _json(const=True)]


class Cancellation(Answer):
    service_reservation_id: Uuid
    status: Annotated[str, _json(const="cancelled")]
    cancelled_at: Instant
    already_cancelled: Annotated[bool, _json(const=True)] | UnsetType = UNSET


class EndpointFields(Answer):
    id: Uuid
    url: Uri
    events: tuple[DeliveredEventType, ...]
    active: bool
    created_at: Instant


class WebhookEndpoint(EndpointFields):
    created_by_this_key: bool


class WebhookEndpointHealth(WebhookEndpoint):
    last_success_at: Instant | None
    failing_since: Instant | None


class RolledSecret(Answer):
    id: Uuid
    secret: Annotated[str, Meta(pattern="^whsec_[A-Za-z0-9_-]+$")]
    old_valid_until: Instant


class NewWebhookEndpoint(EndpointFields):
    secret: Annotated[str, Meta(pattern="^whsec_[A-Za-z0-9_-]+$")] | UnsetType = UNSET


class WebhookEndpointList(Answer):
    items: list[WebhookEndpoint]
    events: tuple[DeliveredEventType, ...]
    optional_events: tuple[DeliveredEventType, ...]


class DeactivatedWebhookEndpoint(Answer):
    id: Uuid
    active: Annotated[bool, _json(const=False)]


class WebhookTestResult(Answer):
    queued: Whole
    delivery_ids: list[Uuid]


class Delivery(Answer):
    id: Uuid
    type: DeliveredEventType
    occurred_at: Instant
    service_reservation_id: Uuid | None
    state: Annotated[str, _ref("DeliveryState")]
    attempts: Whole
    last_outcome: Annotated[str, Meta(examples=["http_500"])] | None
    next_attempt_at: Instant | None


class Attempt(Answer):
    n: Positive
    at: Instant
    duration_ms: Whole
    outcome: Annotated[str, Meta(examples=["http_500"])]
    http_status: int | None


class DeliveryWithAttempts(Delivery):
    attempts_made: list[Attempt]


class DeliveryList(Answer):
    items: Annotated[list[Delivery], Meta(max_length=PAGE)]
    has_more: bool


class ReplayResult(Answer):
    queued: Whole


class EventReservation(Answer, kw_only=True):
    """The reservation in a webhook delivery, created by `appliance.webhooks.payload`."""

    service_reservation_id: Uuid
    access_code: AccessCode
    status: Status
    date: VenueDate
    slot: SlotTime | None
    table: TableName
    tables: list[TableName]
    guests: Positive
    customer_first_name: str
    source: Source
    created_by_this_key: bool
    cancelled_by: CancelledBy | UnsetType = UNSET
    notifications: Notifications | UnsetType = UNSET
    external_ref: str | UnsetType = UNSET
    checked_in_at: Instant | None
    late_at: Instant | None
    no_show: bool
    starts_at: Instant
    ends_at: Instant
    venue: VenueName
    created_at: Instant | UnsetType = UNSET
    updated_at: Instant | UnsetType = UNSET


class ListedEventData(Answer):
    reservation: EventReservation | UnsetType = UNSET
    venue: VenueIdentity | UnsetType = UNSET


class ListedEvent(Answer):
    event_id: Uuid
    type: DeliveredEventType
    occurred_at: Instant
    data: ListedEventData


class EventPage(Answer):
    items: Annotated[list[ListedEvent], Meta(max_length=200)]
    next: Annotated[str, Meta(examples=["1042-9f8e7d6c"])]


class VenueEventData(Answer):
    venue: VenueIdentity


class VenueEvent(Answer):
    id: Uuid
    type: DeliveredEventType
    occurred_at: Instant
    data: VenueEventData


class EventData(Answer):
    reservation: EventReservation


class Event(Answer):
    id: Uuid
    type: DeliveredEventType
    occurred_at: Instant
    data: EventData
