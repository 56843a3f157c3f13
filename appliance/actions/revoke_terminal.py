"""Revoke a terminal: its next request is refused (I9)."""

from appliance.model.notices import TerminalGone
from appliance.store.connection import Transaction
from appliance.store.terminals import get_terminal


def revoke_terminal(tx: Transaction, terminal_id: str) -> None:
    """Withdraw a terminal's access for good; NotFound for an unknown one, twice is once."""
    get_terminal(tx, terminal_id)
    tx.execute(
        "UPDATE terminal SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL",
        {"now": tx.now, "id": terminal_id},
    )
    tx.notices.append(TerminalGone(terminal_id))
