"""Rows of `pairing`: one-time offers that make a browser a terminal (docs/security.md, S13)."""

from dataclasses import asdict, dataclass

from appliance.store.connection import Reader, Transaction

MOST_TRIES = 5
_OPEN = "used_at IS NULL AND expires_at > :now"


@dataclass(frozen=True, slots=True)
class Pairing:
    """An open offer: the terminal that it makes, by its link's secret or by its digits."""

    secret_hash: bytes
    code_hash: bytes
    terminal_name: str
    role: str


def add_pairing(tx: Transaction, pairing: Pairing, expires_at: int) -> None:
    """Open an offer; offers that can no longer be taken make room."""
    tx.execute(f"DELETE FROM pairing WHERE NOT ({_OPEN})", {"now": tx.now})  # noqa: S608
    tx.insert("pairing", asdict(pairing) | {"expires_at": expires_at})


def find_pairing_by_secret(reader: Reader, secret_hash: bytes) -> Pairing | None:
    """The offer of that link, unless it is used or expired."""
    return _find(reader, "secret_hash = :hash", secret_hash)


def take_code(tx: Transaction, code_hash: bytes) -> Pairing | None:
    """The offer of those digits, unless it is used, expired, or had five wrong tries.

    Wrong digits count against every open offer: nobody knows which one they were meant for. The
    fifth closes the digits of an offer; its link goes on.
    """
    found = _find(tx, f"code_hash = :hash AND tries < {MOST_TRIES}", code_hash)
    if found is None:
        sql = f"UPDATE pairing SET tries = tries + 1 WHERE {_OPEN} AND tries < {MOST_TRIES}"  # noqa: S608
        tx.execute(sql, {"now": tx.now})
    return found


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer as it is shown to who made it. `state` is open, used or over."""

    terminal_name: str
    role: str
    expires_at: int
    state: str


def find_offer(reader: Reader, secret_hash: bytes) -> Offer | None:
    """How the offer of that link stands; None once it is forgotten."""
    sql = f"""SELECT terminal_name, role, expires_at,
                     CASE WHEN used_at IS NOT NULL THEN 'used' WHEN {_OPEN} THEN 'open'
                          ELSE 'over' END
              FROM pairing WHERE secret_hash = :hash"""  # noqa: S608
    return reader.one(Offer, sql, {"hash": secret_hash, "now": reader.now})


def list_open_offers(reader: Reader) -> list[Offer]:
    """Every offer that a phone may still take, the next to end first."""
    sql = f"""SELECT terminal_name, role, expires_at, 'open' FROM pairing
              WHERE {_OPEN} ORDER BY expires_at"""  # noqa: S608
    return [Offer(*row) for row in reader.rows(sql, {"now": reader.now})]


def _find(reader: Reader, which: str, found_by: bytes) -> Pairing | None:
    sql = f"""SELECT secret_hash, code_hash, terminal_name, role FROM pairing
              WHERE {which} AND {_OPEN}"""  # noqa: S608 - conditions of this file
    return reader.one(Pairing, sql, {"hash": found_by, "now": reader.now})
