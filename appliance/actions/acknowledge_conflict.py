"""Acknowledge a conflict of the door: somebody has seen it and dealt with it."""

from appliance.model.conflict import Conflict
from appliance.model.notices import ConflictChanged
from appliance.store.conflicts import get_conflict
from appliance.store.connection import Transaction


def acknowledge_conflict(tx: Transaction, conflict_id: str, *, actor: str) -> Conflict:
    """Take it off the list of open conflicts; NotFound for an unknown one, twice is once.

    `actor` is `staff:<id>` or `terminal:<id>`. The people stay counted as they are.
    """
    if get_conflict(tx, conflict_id).acknowledged_at is None:
        tx.update("door_conflict", conflict_id, acknowledged_at=tx.now, acknowledged_by=actor)
        tx.notices.append(ConflictChanged(conflict_id))
    return get_conflict(tx, conflict_id)
