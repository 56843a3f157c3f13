"""All objects that the partner API returns, as structs that encode and describe themselves.

`web.api.openapi` generates the schemas from them, with descriptions from openapi.md. Requests
are also described there, but validated by our own parsers, so that each error has its exact
code and field.
"""
# ruff: noqa: D101 - openapi.md describes each object and member

from typing import Annotated, Any, Self

from msgspec import UNSET, Meta, Struct, UnsetType

from appliance.api_keys import ApiKey
from appliance.clock import format_instant, optional_instant
from appliance.environment import Environment
from appliance.reservations import model as reservation
from appliance.reservations import request as booking
from appliance.reservations import search
from appliance.reservations.change import Cancelled
from appliance.venue import model as venue
from appliance.webhooks import endpoints as endpoint


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
EventType = Annotated[str, _ref("EventType")]
DeliveredEventType = Annotated[str, _ref("DeliveredEventType")]
Reference = Annotated[str, Meta(min_length=1, max_length=booking.REFERENCE_MAX)]


class Answer(Struct, rename="camel"):
    """An object in an answer. Its schema is open: /v1 may add members."""

    @classmethod
    def of(cls, row: object, **others: Any) -> Self:
        """Build the object from the attributes of `row`; `others` take precedence."""
        for name in cls.__struct_fields__:
            if name not in others:
                others[name] = getattr(row, name)
        return cls(**others)


class Error(Answer, rename=None):
    """The body of every error; `ApiError.body` renders it."""

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
    policies: Annotated[dict[str, Any], _json(additionalProperties=True)] | None
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$", examples=["MAD"])]


class TableAvailability(Answer):
    id: Uuid
    name: str
    available: bool
    blocked_by: Annotated[str, _json(enum=["platform", "partner", "manual"])] | None


class Availability(Answer):
    date: VenueDate
    slot: SlotTime | None
    tables: list[TableAvailability]


class TableName(Answer):
    id: Uuid
    name: str


class Reservation(Answer):
    id: Uuid
    access_code: AccessCode | None
    status: Status
    date: VenueDate
    slot: SlotTime | None
    table: TableName
    guests: Positive
    customer_first_name: str | None
    source: Source
    checked_in_at: Instant | None
    created_at: Instant
    external_ref: Reference | UnsetType = UNSET
    customer_email: str | UnsetType | None = UNSET
    customer_phone: str | UnsetType | None = UNSET


class ReservationPage(Answer):
    items: Annotated[list[Reservation], Meta(max_length=200)]
    page: Positive
    limit: Annotated[int, Meta(ge=1, le=200)]
    total: Whole
    contact_details_included: bool


class Notifications(Answer):
    email: Annotated[str, _json(enum=["sent", "failed", "skipped"])]
    sms: Annotated[str, _json(const="skipped")]


class CreationResult(Answer):
    service_reservation_id: Uuid
    access_code: AccessCode
    status: Annotated[str, _json(const="confirmed")]
    guest_access_url: Uri
    claim_url: Uri
    access_link_expires_at: Instant
    notifications: Notifications


class Cancellation(Answer):
    service_reservation_id: Uuid
    status: Annotated[str, _json(const="cancelled")]
    cancelled_at: Instant
    already_cancelled: Annotated[bool, _json(const=True)] | UnsetType = UNSET


class WebhookEndpoint(Answer):
    id: Uuid
    url: Uri
    events: tuple[DeliveredEventType, ...]
    active: bool
    created_at: Instant
    created_by_this_key: bool


class NewWebhookEndpoint(Answer):
    id: Uuid
    url: Uri
    events: tuple[DeliveredEventType, ...]
    active: bool
    created_at: Instant
    secret: Annotated[str, Meta(pattern="^whsec_[A-Za-z0-9_-]+$")]


class WebhookEndpointList(Answer):
    items: list[WebhookEndpoint]
    events: tuple[EventType, ...]


class DeactivatedWebhookEndpoint(Answer):
    id: Uuid
    active: Annotated[bool, _json(const=False)]


class WebhookTestResult(Answer):
    queued: Whole
    delivery_ids: list[Uuid]


class VenueName(Answer):
    id: Uuid
    name: str


class EventReservation(Answer, kw_only=True):
    """The reservation in a delivery; `appliance.webhooks.payload` renders it."""

    service_reservation_id: Uuid
    access_code: AccessCode
    status: Status
    date: VenueDate
    slot: SlotTime | None
    table: TableName
    guests: Positive
    customer_first_name: str
    source: Source
    external_ref: str | UnsetType = UNSET
    checked_in_at: Instant | None
    venue: VenueName
    created_at: Instant | UnsetType = UNSET
    updated_at: Instant | UnsetType = UNSET


class EventData(Answer):
    reservation: EventReservation


class Event(Answer):
    id: Uuid
    type: DeliveredEventType
    occurred_at: Instant
    data: EventData


def venue_answer(
    found: venue.Venue, tables: list[venue.Table], slots: list[venue.Slot]
) -> Venue:  # fmt: skip
    """Return the Venue object (interface, section 2.1)."""
    return Venue.of(
        found,
        venue=VenueIdentity.of(found),
        tables=[Table.of(table) for table in tables],
        slots=[Slot.of(slot) for slot in slots],
    )


def availability_answer(
    day: str, slot: str | None, tables: list[search.TableAvailability]
) -> Availability:
    """Return the Availability object (interface, section 2.4); date and slot repeat the query."""
    entries = [
        TableAvailability.of(each, id=each.table.id, name=each.table.name) for each in tables
    ]
    return Availability(date=day, slot=slot, tables=entries)


def reservation_answer(
    reservation: reservation.Reservation, *, lineage: str, shows_contacts: bool
) -> Reservation:
    """Return a list item (interface, section 2.5) with the fields visible to `lineage`."""
    own = reservation.lineage == lineage and reservation.external_ref is not None
    return Reservation.of(
        reservation,
        table=TableName(id=reservation.table_id, name=reservation.table_name),
        checked_in_at=optional_instant(reservation.checked_in_at),
        created_at=format_instant(reservation.created_at),
        external_ref=reservation.external_ref if own else UNSET,
        customer_email=reservation.customer_email if shows_contacts else UNSET,
        customer_phone=reservation.customer_phone if shows_contacts else UNSET,
    )


def creation_answer(issued: reservation.Issued, environment: Environment) -> CreationResult:
    """Return the creation result (interface, section 2.7), identical for each replay."""
    keyring, links = environment.keyring, environment.links
    return CreationResult(
        service_reservation_id=issued.reservation_id,
        access_code=issued.access_code,
        status="confirmed",
        guest_access_url=links.access(keyring.access_token(issued.reservation_id)),
        claim_url=links.claim(keyring.claim_token(issued.reservation_id)),
        access_link_expires_at=format_instant(issued.link_expires_at),
        notifications=Notifications(email=issued.email_outcome or "failed", sms="skipped"),
    )


def cancellation_answer(cancelled: Cancelled) -> Cancellation:
    """Return the answer to `DELETE /v1/reservations/{id}` (interface, section 4)."""
    reservation = cancelled.reservation
    return Cancellation(
        service_reservation_id=reservation.id,
        status=reservation.status,
        cancelled_at=format_instant(reservation.cancelled_at or reservation.updated_at),
        already_cancelled=cancelled.already or UNSET,
    )


def endpoint_answer(found: endpoint.Endpoint, key: ApiKey) -> WebhookEndpoint:
    """Return a list item. Omits the URL's query, which may be a secret, for other keys."""
    own = found.lineage == key.lineage
    return WebhookEndpoint.of(
        found,
        url=found.url if own else found.url.partition("?")[0],
        created_at=format_instant(found.created_at),
        created_by_this_key=own,
    )
