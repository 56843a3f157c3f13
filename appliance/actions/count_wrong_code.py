"""Count a wrong code: ten typed within a minute close a terminal's keyboard, not its scanner."""

import json

from appliance.house_errors import TooManyWrongCodes
from appliance.model.terminal import Terminal
from appliance.store.connection import Transaction
from appliance.store.terminals import list_wrong_codes

WRONG_CODES_A_MINUTE = 10
_MINUTE = 60_000


def check_wrong_codes(tx: Transaction, terminal: Terminal) -> None:
    """Refuse all typed codes for a minute after too many wrong ones (docs/security.md, S10)."""
    if is_keyboard_closed(tx, terminal):
        raise TooManyWrongCodes


def is_keyboard_closed(tx: Transaction, terminal: Terminal) -> bool:
    """Whether too many wrong codes were typed on it within the last minute."""
    return len(_recent(tx, terminal)) >= WRONG_CODES_A_MINUTE


def count_wrong_code(tx: Transaction, terminal: Terminal) -> None:
    """Remember that a wrong code was typed now, simulated ones too: a guess is a guess."""
    wrong_codes = json.dumps([*_recent(tx, terminal), tx.now])
    tx.update("terminal", terminal.id, wrong_codes=wrong_codes)


def _recent(tx: Transaction, terminal: Terminal) -> list[int]:
    return list_wrong_codes(tx, terminal.id, since=tx.now - _MINUTE)
