"""The venue and what is free in it."""

from appliance import errors
from web.api.openapi import samples
from web.api.openapi.operations.operation import Operation, json_answer, query_parameter
from web.api.openapi.schemas.parts import slot_time, venue_date

TAG = "Venue"


def venue_operations(wish: samples.Wish) -> dict[str, Operation]:
    """Operations by id."""
    return {"getVenue": _get_venue(), "getAvailability": _get_availability(wish)}


def _get_venue() -> Operation:
    return Operation(
        tag=TAG,
        summary="The venue, its tables and its slots",
        description="Read it once a day, or when a call is refused with `TABLE_NOT_FOUND` or "
        "`INVALID_SLOT`: tables and slots change rarely. Map your own tables by `number`.",
        answers={200: json_answer("The venue.", "Venue", {"venue": samples.VENUE})},
    )


def _get_availability(wish: samples.Wish) -> Operation:
    return Operation(
        tag=TAG,
        summary="Which tables are free",
        description="For one slot or, without `slot`, for the whole evening: a table is then "
        "`available` only when nothing holds it at any time of that date. No table is available "
        "in a slot that has ended, on a closing day, or while the venue is not active. The answer "
        "is indicative: another reservation may arrive before yours, and creation decides.",
        parameters=(
            query_parameter(
                "date",
                "The evening, in venue time. After midnight and until the evening ends, tonight is "
                "still yesterday's date.",
                venue_date("The evening."),
                required=True,
                example=wish.date,
            ),
            query_parameter(
                "slot",
                "`start` of a slot offered on that weekday.",
                slot_time("Start of the slot."),
                example=wish.slot,
            ),
        ),
        answers={
            200: json_answer(
                "Every table with its state.", "Availability", {"slot": samples.AVAILABILITY}
            )
        },
        refusals=(errors.InvalidDate(field="date"), errors.InvalidSlot(field="slot")),
    )
