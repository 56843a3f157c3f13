"""Pair a terminal: a one-time code becomes a token (S13)."""

from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.note_security import NOBODY
from appliance.store.connection import Transaction
from appliance.store.pairings import charge_open_pairings, find_open_pairing, use_pairing
from appliance.tokens import hash_token


def pair_terminal(
    tx: Transaction, code: str, name: str | None = None, language: str = "fr"
) -> tuple[str, str] | None:
    """The new terminal's (id, token), or None when no open offer has this code.

    `name` is the device's own, else the one it was offered under. A wrong code is answered,
    not raised: it has to be remembered against every open offer.
    """
    pairing = find_open_pairing(tx, hash_token(code))
    if pairing is None:
        charge_open_pairings(tx)
        return None
    use_pairing(tx, pairing.code_hash)
    return issue_terminal(tx, name or pairing.terminal_name, pairing.role, language, actor=NOBODY)
