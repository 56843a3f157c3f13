"""Walk-ins: parties that are seated without a reservation (interface, section 3)."""

from appliance.core.errors import InvalidSlot
from appliance.database.connection import Transaction
from appliance.door.check_in import check_in_by_staff
from appliance.reservations.create import enter_by_staff
from appliance.reservations.model import Reservation
from appliance.reservations.request import Booking
from appliance.reservations.rows import get_reservation
from appliance.staff.model import StaffMember
from appliance.venue.model import find_tonight


def seat_walk_in(
    tx: Transaction, person: StaffMember, table_id: str, slot: str | None, guests: int,
    *, form_id: str, over_capacity: bool = False,
) -> Reservation:  # fmt: skip
    """Book a table for tonight, and check the whole party in. Nobody asks for a name.

    `slot` is None for the whole evening. Idempotent for each `form_id`. Raises the errors of
    `enter_by_staff`, and InvalidSlot if the slot begins later than in the venue's `early_minutes`.
    """
    booking = Booking(
        table_id, find_tonight(tx), slot, guests, "", None, None, idempotency_key=form_id
    )
    made = enter_by_staff(
        tx, booking, actor=f"staff:{person.id}", over_capacity=over_capacity, walk_in=True
    )
    decided = check_in_by_staff(tx, person, made.id, form_id, arrivals=None, reason=None)
    if decided.verdict.result == "not_yet":
        raise InvalidSlot(field="slot")
    return get_reservation(tx, made.id)
