"""Reservations: listed, created, cancelled."""

from typing import Any

from appliance import errors
from appliance.errors import Refusal
from appliance.model.reservation import STATUSES
from web.api.openapi import samples
from web.api.openapi.operations.operation import (
    Operation,
    json_answer,
    json_body,
    path_id,
    query_parameter,
)
from web.api.openapi.schemas.parts import Schema, list_of, ref, venue_date
from web.reading import PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX

TAG = "Reservations"
_LINK_TO_CANCEL: Schema = {
    "cancel": {
        "operationId": "cancelReservation",
        "parameters": {"id": "$response.body#/serviceReservationId"},
        "description": "Cancel what was just created.",
    }
}


def reservation_operations(wish: samples.Wish) -> dict[str, Operation]:
    """Operations by id."""
    return {
        "listReservations": _list(),
        "createReservation": _create(wish),
        "cancelReservation": _cancel(),
    }


def _list() -> Operation:
    page: Any = {"page": 1, "limit": PAGE_LIMIT_DEFAULT, "total": 1}
    free = {"items": [samples.OWN_RESERVATION], **page, "contactDetailsIncluded": True}
    prepaid = {"items": [samples.PREPAID_RESERVATION], **page, "contactDetailsIncluded": False}
    return Operation(
        tag=TAG,
        summary="Reservations from every source",
        description="In the order of date, slot (whole evenings first), `createdAt`, `id`. "
        "`externalRef` appears only on reservations made with your own key; contact details "
        "only while the venue's `reservationMode` is `free`. A parameter out of its range is "
        "refused, never adjusted.",
        parameters=_list_parameters(),
        answers={
            200: json_answer("A page.", "ReservationPage", {"free": free, "prepaid": prepaid})
        },
        refusals=(
            errors.InvalidDateRange(field="from"),
            errors.ValidationError(
                field="limit",
                rule_fr="limit : un entier de 1 à 200.",
                rule="limit: a whole number from 1 to 200.",
            ),
        ),
    )


def _list_parameters() -> tuple[Schema, ...]:
    statuses = list_of(ref("ReservationStatus"), "Statuses.", minItems=1)
    size: Schema = {
        "type": "integer",
        "minimum": 1,
        "maximum": PAGE_LIMIT_MAX,
        "default": PAGE_LIMIT_DEFAULT,
    }
    number: Schema = {"type": "integer", "minimum": 1, "maximum": 2**53, "default": 1}
    return (
        query_parameter("from", "First date, inclusive.", venue_date("First date.")),
        query_parameter("to", "Last date, inclusive.", venue_date("Last date.")),
        query_parameter(
            "status",
            f"Comma-separated list of statuses to keep: {', '.join(STATUSES)}.",
            statuses,
            style="form",
            explode=False,
            example=["confirmed", "completed"],
        ),
        query_parameter("page", "Page number.", number),
        query_parameter("limit", "Page size.", size),
    )


def _create(wish: samples.Wish) -> Operation:
    return Operation(
        tag=TAG,
        summary="Create a reservation",
        description=_CREATE,
        body=json_body(
            "CreateReservation",
            {
                "slot": samples.booking(wish),
                "wholeEvening": samples.whole_evening_booking(wish),
            },
        ),
        answers={
            201: json_answer(
                "The table is held.",
                "CreationResult",
                {"created": samples.CREATION},
                links=_LINK_TO_CANCEL,
            ),
            200: json_answer(
                "A replay: this `idempotencyKey` was processed before. The original result, "
                "unchanged; nothing new was made.",
                "CreationResult",
                {"replayed": samples.CREATION},
                headers=("Idempotent-Replayed", "Reservation-Status", "Idempotency-Body-Mismatch"),
                links=_LINK_TO_CANCEL,
            ),
        },
        refusals=_create_refusals(),
    )


def _create_refusals() -> tuple[Refusal, ...]:
    """In the order in which they are looked for."""
    return (
        errors.InvalidDate(field="date"),
        errors.DateOutOfRange(field="date"),
        errors.InvalidSlot(field="slot"),
        errors.InvalidTable(field="tableId"),
        errors.InvalidGuests(field="guests"),
        errors.CustomerNameRequired(field="customer.name"),
        errors.CustomerContactRequired(field="customer.email"),
        errors.InvalidEmail(field="customer.email"),
        errors.IdempotencyKeyRequired(field="idempotencyKey"),
        errors.ValidationError(
            field="notes",
            rule_fr="notes : 500 caractères au plus.",
            rule="notes: at most 500 characters.",
        ),
        errors.VenueInactive(),
        errors.TableNotFound(),
        errors.TableNotBookable(),
        errors.GuestsOutOfRange(field="guests", capacity_min=2, capacity_max=4),
        errors.TableTaken(),
    )


_CREATE = """\
First come, first served: the first request for a table, date and slot gets 201, every later one \
409 `TABLE_TAKEN`. A slot holds its own time, no slot holds the whole evening; two reservations of \
a table conflict when their times overlap. The reservation is confirmed at once, without payment.

**Idempotency.** Send the same `idempotencyKey` again after a network error: you get the original \
result with status 200 and `Idempotent-Replayed: true`, also when the body differs; the header \
`Idempotency-Body-Mismatch: true` then warns you. After a cancellation too: `Reservation-Status` \
has the status now, and with `cancelled` no table is held, so a new booking needs a new key. A \
request that arrives while the first is still being processed waits for it. Refused requests are \
not stored: correct them and use the same key. A key is kept as long as its reservation, never \
under 30 days, and a rotated API key inherits those of its predecessor.

**Order of checks.** JSON; `date`, `slot`, `tableId`, `guests`, `customer.name`, contact, email, \
`idempotencyKey`; the other fields (`VALIDATION_ERROR`); then replay, venue active, table known, \
table bookable, guests within capacity, slot offered on that weekday, date within range, slot \
not over, table free. A slot can be booked until it ends. Never retry a 409.
"""


def _cancel() -> Operation:
    again = {**samples.CANCELLATION, "alreadyCancelled": True}
    return Operation(
        tag=TAG,
        summary="Cancel one of your reservations",
        description="Frees the table. Only reservations created with your own key (or the key it "
        "replaced) can be cancelled; any other identifier is 404. Cancelling again changes "
        "nothing and says so. A guest who already arrived does not prevent it; `checkedInAt` "
        "is kept. A customer who was sent an email about the reservation gets one about its "
        "cancellation, unless `notifyCustomer` is false.",
        parameters=(
            path_id("The `serviceReservationId` of creation.", samples.RESERVATION_ID),
            query_parameter(
                "notifyCustomer",
                "False: no email is sent. True when it is left out.",
                {"type": "boolean"},
            ),
        ),
        answers={
            200: json_answer(
                "Cancelled.", "Cancellation", {"cancelled": samples.CANCELLATION, "again": again}
            )
        },
        refusals=(
            errors.ValidationError(
                field="notifyCustomer",
                rule_fr="notifyCustomer : true ou false attendu.",
                rule="notifyCustomer: true or false expected.",
            ),
            errors.NotFound(),
        ),
    )
