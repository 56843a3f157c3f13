"""Ask for erasure: a guest wants the box to forget them (law 09-08)."""

from appliance.store.claims import add_erasure_request
from appliance.store.connection import Transaction
from appliance.store.reservations import add_history, get_reservation


def ask_erasure(tx: Transaction, reservation_id: str) -> None:
    """Write the request down, for staff to see; asked twice is asked once."""
    get_reservation(tx, reservation_id)
    if add_erasure_request(tx, reservation_id):
        add_history(tx, reservation_id, "erasure_asked", "guest")
