"""The row of `setup`: how far a new box has come, and the one-time link of its first owner."""

import json
from dataclasses import dataclass

from appliance.store.connection import Reader, Transaction


@dataclass(frozen=True, slots=True)
class Setup:
    """`closed`: nothing but the setup page answers until there is an owner."""

    closed: bool
    steps: tuple[str, ...]


def find_setup(reader: Reader) -> Setup | None:
    """How far the setup has come; None where nobody began one."""
    row = reader.row("SELECT closed, steps FROM setup")
    return None if row is None else Setup(bool(row[0]), tuple(json.loads(row[1])))


def is_closed(reader: Reader) -> bool:
    """Whether this box waits for its first owner. One statement: it may be looked up."""
    sql = """SELECT 1 FROM setup WHERE closed = 1 AND NOT EXISTS (
                 SELECT 1 FROM staff
                 WHERE role = 'owner' AND password IS NOT NULL AND disabled_at IS NULL)"""
    return reader.row(sql) is not None


def begin_setup(tx: Transaction, *, closed: bool) -> None:
    """Make the row, unless there is one."""
    sql = "INSERT INTO setup (id, closed) VALUES (1, :closed) ON CONFLICT DO NOTHING"
    tx.execute(sql, {"closed": int(closed)})


def set_setup_link(tx: Transaction, link_hash: bytes | None, expires_at: int | None) -> None:
    """Which link works, until when; every other one is dead."""
    sql = "UPDATE setup SET link_hash = :hash, link_expires_at = :expires_at"
    tx.execute(sql, {"hash": link_hash, "expires_at": expires_at})


def is_setup_link(reader: Reader, link_hash: bytes) -> bool:
    """Whether that link works now."""
    sql = "SELECT 1 FROM setup WHERE link_hash = :hash AND link_expires_at > :now"
    return reader.row(sql, {"hash": link_hash, "now": reader.now}) is not None
