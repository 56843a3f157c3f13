"""Pair a new terminal with a one-time link or eight digits (docs/security.md, S13)."""

from dataclasses import dataclass
from typing import NamedTuple

from appliance.core.tokens import hash_token
from appliance.database.connection import Reader, Transaction
from appliance.door.terminals import check_terminal, issue_terminal
from appliance.staff.audit_log import CONSOLE, NOBODY, record_audit

PAIRING_LIFE_MS = 10 * 60_000
_MOST_TRIES = 5
_OPEN = "used_at IS NULL AND expires_at > :now"  # true for an open pairing offer
_SELECT_OFFER = f"""
    SELECT terminal_name, role, expires_at,
           CASE WHEN used_at IS NOT NULL THEN 'used' WHEN {_OPEN} THEN 'open' ELSE 'over' END
    FROM pairing
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Offer:
    """A pairing offer as its creator sees it. `state` is open, used or over (expired).

    `expires_at` is in ms since 1970.
    """

    terminal_name: str
    role: str
    expires_at: int
    state: str


def find_offer(reader: Reader, secret_hash: bytes) -> Offer | None:
    """Return the pairing offer whose link's secret has this hash, or None if it was deleted."""
    sql = f"{_SELECT_OFFER} WHERE secret_hash = :hash"
    return reader.one(Offer, sql, {"hash": secret_hash, "now": reader.now})


def list_open_offers(reader: Reader) -> list[Offer]:
    """Return all open pairing offers, sorted by when they expire."""
    sql = f"{_SELECT_OFFER} WHERE {_OPEN} ORDER BY expires_at"
    return [Offer(*row) for row in reader.rows(sql, {"now": reader.now})]


class Offered(NamedTuple):
    """A pairing offer's secrets: 256 bits for its link, and eight digits to type."""

    secret: str
    code: str

    def link(self, base: str) -> str:
        """Return the pairing URL. The secret is in the fragment, which browsers do not send."""
        return f"{base}/door#pair={self.secret}"


def offer_pairing(
    tx: Transaction, name: str, role: str = "override", *, actor: str = CONSOLE
) -> Offered:
    """Create a pairing offer, which can be used once within ten minutes.

    Raises OperatorError if the name or role is invalid.
    """
    name = check_terminal(name, role)
    code = tx.tokens.new_pairing_code()
    sql = "SELECT 1 FROM pairing WHERE code_hash = :hash"  # also finds used and expired offers
    while tx.row(sql, {"hash": hash_token(code)}) is not None:
        code = tx.tokens.new_pairing_code()
    offered = Offered(tx.tokens.new_link_secret(), code)
    tx.execute(f"DELETE FROM pairing WHERE NOT ({_OPEN})", {"now": tx.now})  # noqa: S608
    tx.insert(
        "pairing",
        {"secret_hash": hash_token(offered.secret), "code_hash": hash_token(code),
         "terminal_name": name, "role": role, "expires_at": tx.now + PAIRING_LIFE_MS},
    )  # fmt: skip
    record_audit(tx, actor, "pairing_offered", name=name, role=role)
    return offered


def pair_by_secret(
    tx: Transaction, secret: str, name: str | None = None, language: str = "fr"
) -> tuple[str, str] | None:
    """Pair a new terminal with the secret from a link. Return the terminal's (id, token).

    Return None if no open offer has this secret. `name` defaults to the name in the offer. Wrong
    secrets are not counted, because 256 bits cannot be guessed.
    """
    return _pair(tx, "secret_hash = :hash", secret, name, language)


def pair_by_code(
    tx: Transaction, code: str, name: str | None = None, language: str = "fr"
) -> tuple[str, str] | None:
    """Pair a new terminal with the eight digits that a user typed, like `pair_by_secret()`.

    Wrong digits count against every open offer, because they do not show which offer was meant.
    After five wrong tries, an offer can no longer be used with its digits, but its link stays
    valid. For wrong digits, this function returns None. An exception would roll back the count.
    """
    paired = _pair(tx, f"code_hash = :hash AND tries < {_MOST_TRIES}", code, name, language)
    if paired is None:
        sql = f"UPDATE pairing SET tries = tries + 1 WHERE {_OPEN} AND tries < {_MOST_TRIES}"  # noqa: S608
        tx.execute(sql, {"now": tx.now})
    return paired


def _pair(
    tx: Transaction, condition: str, secret: str, name: str | None, language: str
) -> tuple[str, str] | None:
    sql = f"""UPDATE pairing SET used_at = :now WHERE {condition} AND {_OPEN}
              RETURNING terminal_name, role"""  # noqa: S608
    offer = tx.row(sql, {"hash": hash_token(secret), "now": tx.now})
    if offer is None:
        return None
    terminal_name, role = offer
    return issue_terminal(tx, name or terminal_name, role, language, actor=NOBODY)
