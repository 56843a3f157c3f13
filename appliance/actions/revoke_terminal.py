"""Revoke a terminal: its next request is refused (docs/promises.md, I9)."""

from appliance.actions.note_security import CONSOLE, note_security
from appliance.model.notices import TerminalGone
from appliance.store.connection import Transaction
from appliance.store.terminals import get_terminal


def revoke_terminal(tx: Transaction, terminal_id: str, *, actor: str = CONSOLE) -> None:
    """Withdraw a terminal's access for good; NotFound for an unknown one, twice is once."""
    terminal = get_terminal(tx, terminal_id)
    if terminal.revoked_at is None:
        tx.update("terminal", terminal_id, revoked_at=tx.now)
        note_security(tx, actor, "terminal_revoked", terminal=terminal_id, name=terminal.name)
    tx.notices.append(TerminalGone(terminal_id))
