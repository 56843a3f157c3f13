"""Rows of `pairing`: one-time codes that make a browser a terminal (S13)."""

from dataclasses import dataclass

from appliance.store.connection import Reader, Transaction

MOST_TRIES = 5
_OPEN = f"used_at IS NULL AND expires_at > :now AND tries < {MOST_TRIES}"


@dataclass(frozen=True, slots=True)
class Pairing:
    """An open offer: the terminal that its code makes."""

    code_hash: bytes
    terminal_name: str
    role: str


def add_pairing(tx: Transaction, pairing: Pairing, expires_at: int) -> None:
    """Open an offer; offers that can no longer be taken make room."""
    tx.execute(f"DELETE FROM pairing WHERE NOT ({_OPEN})", {"now": tx.now})  # noqa: S608
    tx.insert(
        "pairing",
        {
            "code_hash": pairing.code_hash,
            "terminal_name": pairing.terminal_name,
            "role": pairing.role,
            "expires_at": expires_at,
        },
    )


def find_open_pairing(reader: Reader, code_hash: bytes) -> Pairing | None:
    """The offer of that code, unless it is used, expired, or had five wrong tries."""
    row = reader.row(
        f"""SELECT code_hash, terminal_name, role FROM pairing
            WHERE code_hash = :hash AND {_OPEN}""",  # noqa: S608
        {"hash": code_hash, "now": reader.now},
    )
    return None if row is None else Pairing(*row)


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer as it is shown to who made it. `state` is open, used or over."""

    terminal_name: str
    role: str
    expires_at: int
    state: str


def find_offer(reader: Reader, code_hash: bytes) -> Offer | None:
    """How the offer of that code stands; None once it is forgotten."""
    row = reader.row(
        f"""SELECT terminal_name, role, expires_at,
                   CASE WHEN used_at IS NOT NULL THEN 'used' WHEN {_OPEN} THEN 'open'
                        ELSE 'over' END
            FROM pairing WHERE code_hash = :hash""",  # noqa: S608
        {"hash": code_hash, "now": reader.now},
    )
    return None if row is None else Offer(*row)


def list_open_offers(reader: Reader) -> list[Offer]:
    """Every offer that a phone may still take, the next to end first."""
    rows = reader.rows(
        f"""SELECT terminal_name, role, expires_at, 'open' FROM pairing
            WHERE {_OPEN} ORDER BY expires_at""",  # noqa: S608
        {"now": reader.now},
    )
    return [Offer(*row) for row in rows]


def use_pairing(tx: Transaction, code_hash: bytes) -> None:
    """Close the offer: its code is worth nothing from now on."""
    tx.execute(
        "UPDATE pairing SET used_at = :now WHERE code_hash = :hash",
        {"now": tx.now, "hash": code_hash},
    )


def charge_open_pairings(tx: Transaction) -> None:
    """Count a wrong code against every open offer: nobody knows which one it was meant for."""
    tx.execute(f"UPDATE pairing SET tries = tries + 1 WHERE {_OPEN}", {"now": tx.now})  # noqa: S608
