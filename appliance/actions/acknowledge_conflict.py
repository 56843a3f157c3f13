"""Acknowledge a conflict of the door: somebody has seen it and dealt with it."""

from appliance.model.conflict import Conflict
from appliance.model.notices import ConflictChanged
from appliance.store.conflicts import get_conflict, set_acknowledged
from appliance.store.connection import Transaction


def acknowledge_conflict(tx: Transaction, conflict_id: str, *, actor: str) -> Conflict:
    """Take it off the list of open conflicts; NotFound for an unknown one, twice is once.

    `actor` is `staff:<id>` or `terminal:<id>`. The people stay counted as they are.
    """
    conflict = get_conflict(tx, conflict_id)
    if set_acknowledged(tx, conflict.id, actor):
        tx.notices.append(ConflictChanged(conflict.id))
    return get_conflict(tx, conflict_id)
