"""Close the venue on some days: nothing can be booked then. What was booked before is kept."""

from dataclasses import replace
from datetime import date

from appliance.errors import InvalidDateRange, NotFound
from appliance.model.evening import BOOKING_HORIZON_DAYS
from appliance.model.venue import Closing
from appliance.model.venue_clash import Clashes, clash_mark, closing_clashes
from appliance.store.connection import Transaction
from appliance.store.readings import find_tonight
from appliance.store.venue import list_closings, list_coming


def close_days(
    tx: Transaction, first: date, last: date, reason: str, accepted: str | None = None
) -> Clashes:
    """Close from `first` to `last`, both included; InvalidDateRange for what cannot be.

    The same days closed again for the same reason stay one closing.

    Reservations of these days are answered, and nothing is changed, until `accepted` is the
    `clash_mark` of exactly these.
    """
    tonight = find_tonight(tx)
    if not tonight <= last or not first <= last or (last - tonight).days > BOOKING_HORIZON_DAYS:
        raise InvalidDateRange(field="last")
    closing = Closing(tx.new_id(), first.isoformat(), last.isoformat(), reason)
    clashes = closing_clashes(list_coming(tx, tonight.isoformat()), closing)
    if clashes and clash_mark(clashes) != accepted:
        return clashes
    if any(replace(other, id=closing.id) == closing for other in list_closings(tx)):
        return ()
    tx.insert(
        "closing_day",
        {"id": closing.id, "first_day": closing.first, "last_day": closing.last, "reason": reason},
    )
    return ()


def open_days(tx: Transaction, closing_id: str) -> None:
    """Take a closing back; NotFound."""
    if not tx.execute("DELETE FROM closing_day WHERE id = :id", {"id": closing_id}):
        raise NotFound
