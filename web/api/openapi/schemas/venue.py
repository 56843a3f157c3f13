"""The venue, its tables, its slots, and what is free (interface, sections 2.1 to 2.4)."""

from web.api.openapi import samples
from web.api.openapi.schemas.parts import (
    Schema,
    answer_object,
    boolean,
    integer,
    list_of,
    nullable,
    ref,
    slot_time,
    text,
    uuid,
    venue_date,
)


def venue_schemas() -> dict[str, Schema]:
    """Component schemas by name."""
    return {
        "Venue": _venue(),
        "VenueIdentity": _venue_identity(),
        "Table": _table(),
        "Slot": _slot(),
        "Availability": _availability(),
        "TableAvailability": _table_availability(),
    }


def _venue_identity() -> Schema:
    return answer_object(
        {
            "id": uuid("Identifier of the venue."),
            "name": text("Display name."),
            "slug": text("Short name, as used in addresses."),
            "status": text(
                "While it is anything but `active`, creating a reservation is refused with "
                "409 `VENUE_INACTIVE`.",
                enum=["active", "inactive", "suspended"],
            ),
        },
        description="Who the venue is.",
    )


def _venue() -> Schema:
    return answer_object(
        {
            "venue": ref("VenueIdentity"),
            "reservationMode": text(
                "How customers reserve on the platform: against payment (`prepaid`) or without "
                "(`free`). In `free` mode the reservation list carries contact details.",
                enum=["prepaid", "free"],
            ),
            "autoConfirm": boolean(
                "Whether platform reservations in `free` mode are confirmed without the staff. "
                "Reservations made through this interface always are."
            ),
            "requestExpiryHours": integer(
                "Hours after which a request that the staff did not answer is declined.", minimum=0
            ),
            "tables": list_of(ref("Table"), "Every table, in the venue's order."),
            "slots": list_of(ref("Slot"), "Every slot, in the venue's order."),
            "policies": {
                "type": ["object", "null"],
                "additionalProperties": True,
                "description": "House rules, for display. Members vary by venue, for example "
                "`cancellation`, `lateArrivalMinutes`, `minimumAge`, `dressCode`.",
            },
            "currency": text(
                "ISO 4217 code of every amount.", pattern="^[A-Z]{3}$", examples=["MAD"]
            ),
        },
        description="The venue that the key belongs to.",
        examples=[samples.VENUE],
    )


def _table() -> Schema:
    return answer_object(
        {
            "id": uuid("The `tableId` of every other call."),
            "name": text("Display name."),
            "number": text(
                "Label shown in the room. Use it to map your own tables to these.", examples=["T1"]
            ),
            "capacityMin": integer("Smallest party.", minimum=1),
            "capacityMax": integer("Largest party.", minimum=1),
            "minimumSpend": integer(
                "In whole units of the venue's `currency`, without decimals.", minimum=0
            ),
            "type": text(
                "An open list: expect values that are not among the examples.",
                examples=["standard", "vip", "booth", "bar", "terrace"],
            ),
            "bookable": boolean(
                "When false, the table cannot be reserved through this interface "
                "(409 `TABLE_NOT_BOOKABLE`)."
            ),
        },
        description="A table of the venue.",
    )


def _slot() -> Schema:
    return answer_object(
        {
            "id": text("Identifier of the slot. Calls name a slot by its `start`."),
            "name": text("Display name."),
            "start": slot_time("When it starts, in venue time: the `slot` of every other call."),
            "end": slot_time(
                "When it ends, in venue time. At or before `start`, it ends the next morning and "
                "still belongs to the evening on which it starts."
            ),
            "daysOfWeek": list_of(
                {"type": "integer", "minimum": 0, "maximum": 6},
                "Days on which the slot is offered: 0 is Sunday, 6 is Saturday.",
                uniqueItems=True,
            ),
        },
        description="A stretch of the evening that can be reserved.",
    )


def _availability() -> Schema:
    return answer_object(
        {
            "date": venue_date("The date that was asked for."),
            "slot": nullable(slot_time("The slot that was asked for; null for the whole date.")),
            "tables": list_of(ref("TableAvailability"), "Every table, in the venue's order."),
        },
        description="Which tables are free. Indicative: the outcome is decided on creation.",
        examples=[samples.AVAILABILITY],
    )


def _table_availability() -> Schema:
    return answer_object(
        {
            "id": uuid("The table."),
            "name": text("Its display name."),
            "available": boolean(
                "Whether the table is free for the slot or, without a slot, for the whole "
                "evening. Always false for a table that is not `bookable`."
            ),
            "blockedBy": {
                "type": ["string", "null"],
                "enum": ["platform", "partner", "manual", None],
                "description": "Who holds the table: `platform` (reserved on the platform), "
                "`partner` (through this interface), `manual` (entered by the venue's staff), "
                "null when nobody does. The earliest reservation counts if there are several.",
            },
        },
        description="A table on the date and slot that were asked for.",
    )
