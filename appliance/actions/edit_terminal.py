"""Edit a terminal: its name and what it may do, from its next request on."""

from appliance.actions.issue_terminal import check_terminal
from appliance.actions.note_security import CONSOLE, note_security
from appliance.house_errors import ChangedMeanwhile, TerminalRevoked
from appliance.model.notices import TerminalEdited
from appliance.model.venue import fingerprint
from appliance.store.connection import Transaction
from appliance.store.terminals import get_terminal


def terminal_mark(name: str, role: str) -> str:
    """What a form carries of the terminal that its author saw."""
    return fingerprint((name, role))


def edit_terminal(
    tx: Transaction, terminal_id: str, seen: str, name: str, role: str, *, actor: str = CONSOLE
) -> None:
    """Rename a terminal or change its role. NotFound, ChangedMeanwhile, TerminalRevoked.

    `seen` is the `terminal_mark` of what the author read. Its live feed ends, and it comes
    back to it as what it is now.
    """
    terminal = get_terminal(tx, terminal_id)
    if terminal.revoked_at is not None:
        raise TerminalRevoked
    if terminal_mark(terminal.name, terminal.role) != seen:
        raise ChangedMeanwhile
    name = check_terminal(name, role)
    note_security(tx, actor, "terminal_edited", terminal=terminal_id, name=name, role=role)
    tx.update("terminal", terminal_id, name=name, role=role)
    tx.notices.append(TerminalEdited(terminal_id))
