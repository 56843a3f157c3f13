"""Offer a pairing: a one-time link, or digits to type (docs/security.md, S13)."""

from typing import NamedTuple

from appliance.actions.issue_terminal import check_terminal
from appliance.actions.note_security import CONSOLE, note_security
from appliance.store.connection import Transaction
from appliance.store.pairings import Pairing, add_pairing
from appliance.tokens import hash_token

PAIRING_LIFE_MS = 10 * 60_000


class Offered(NamedTuple):
    """Two ways to take one offer: 256 bits that a link carries, and eight digits to type."""

    secret: str
    code: str

    def link(self, base: str) -> str:
        """Where a phone takes it. What stands behind # is sent to nobody on the way."""
        return f"{base}/door#pair={self.secret}"


def offer_pairing(
    tx: Transaction, name: str, role: str = "override", *, actor: str = CONSOLE
) -> Offered:
    """An offer, good once and for ten minutes; its digits for five wrong tries, too."""
    name = check_terminal(name, role)
    code = tx.tokens.new_pairing_code()
    sql = "SELECT 1 FROM pairing WHERE code_hash = :hash"  # one that nobody can type any more too
    while tx.row(sql, {"hash": hash_token(code)}) is not None:
        code = tx.tokens.new_pairing_code()
    offered = Offered(tx.tokens.new_link_secret(), code)
    pairing = Pairing(hash_token(offered.secret), hash_token(code), name, role)
    add_pairing(tx, pairing, tx.now + PAIRING_LIFE_MS)
    note_security(tx, actor, "pairing_offered", name=name, role=role)
    return offered
