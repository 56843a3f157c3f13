"""Stop reminders: a guest wants no more of them, for this reservation or any other."""

from appliance.store.connection import Transaction
from appliance.store.no_reminders import add_no_reminders
from appliance.store.reservations import get_reservation


def stop_reminders(tx: Transaction, reservation_id: str) -> None:
    """Remember the address of the reservation, as a hash; without one there is nothing to do.

    NotFound for an unknown id.
    """
    address = get_reservation(tx, reservation_id).customer_email
    if address is not None:
        add_no_reminders(tx, address)
