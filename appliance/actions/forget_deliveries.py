"""Forget deliveries: the webhook log quotes nothing of an erased guest."""

from appliance.store.connection import Transaction
from appliance.store.retention import erase_deliveries_of


def forget_deliveries_of(tx: Transaction, reservation_id: str) -> None:
    """Erase request, answers and digests of every delivery about a reservation.

    When it was sent and what came of it stays: that is about the endpoint. A digest goes too,
    for a guessed name could be tried against it.
    """
    erase_deliveries_of(tx, reservation_id)
