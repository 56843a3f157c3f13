"""Pair a terminal: a one-time offer becomes a token (docs/security.md, S13)."""

from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.note_security import NOBODY
from appliance.store.connection import Transaction
from appliance.store.pairings import Pairing, find_pairing_by_secret, take_code
from appliance.tokens import hash_token


def pair_by_secret(
    tx: Transaction, secret: str, name: str | None = None, language: str = "fr"
) -> tuple[str, str] | None:
    """The new terminal's (id, token), or None when no open offer's link carries this secret.

    `name` is the device's own, else the one it was offered under. A wrong secret counts
    against nothing: nobody finds 256 bits by trying.
    """
    return _take(tx, find_pairing_by_secret(tx, hash_token(secret)), name, language)


def pair_by_code(
    tx: Transaction, code: str, name: str | None = None, language: str = "fr"
) -> tuple[str, str] | None:
    """The same by the digits that were typed.

    Wrong ones are answered, not raised: they have to be remembered against every open offer.
    """
    return _take(tx, take_code(tx, hash_token(code)), name, language)


def _take(
    tx: Transaction, pairing: Pairing | None, name: str | None, language: str
) -> tuple[str, str] | None:
    if pairing is None:
        return None
    sql = "UPDATE pairing SET used_at = :now WHERE secret_hash = :hash"
    tx.execute(sql, {"now": tx.now, "hash": pairing.secret_hash})
    return issue_terminal(tx, name or pairing.terminal_name, pairing.role, language, actor=NOBODY)
