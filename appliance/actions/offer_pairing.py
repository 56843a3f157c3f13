"""Offer a pairing: a one-time code that makes the browser it is typed in a terminal (S13)."""

from appliance.actions.issue_terminal import check_terminal
from appliance.actions.note_security import CONSOLE, note_security
from appliance.store.connection import Transaction
from appliance.store.pairings import Pairing, add_pairing, find_open_pairing
from appliance.tokens import hash_token

PAIRING_LIFE_MS = 10 * 60_000


def offer_pairing(
    tx: Transaction, name: str, role: str = "override", *, actor: str = CONSOLE
) -> str:
    """The code: eight digits, good once, for ten minutes and five wrong tries."""
    name = check_terminal(name, role)
    code = tx.tokens.new_pairing_code()
    while find_open_pairing(tx, hash_token(code)) is not None:
        code = tx.tokens.new_pairing_code()
    add_pairing(tx, Pairing(hash_token(code), name, role), tx.now + PAIRING_LIFE_MS)
    note_security(tx, actor, "pairing_offered", name=name, role=role)
    return code
