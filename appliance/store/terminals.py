"""Rows of `terminal`: paired, seen, revoked; and the wrong codes typed on each."""

import json

from appliance.model.terminal import PORTAL_TERMINAL_ID, Terminal
from appliance.store.connection import Reader, Transaction, known

_COLUMNS = "id, name, role, language, created_at, last_seen_at, revoked_at, version"
_BY_ID = f"SELECT {_COLUMNS} FROM terminal WHERE id = :id"  # noqa: S608


def find_by_token(reader: Reader, token_hash: bytes) -> Terminal | None:
    """The terminal that holds this token, revoked ones too."""
    sql = f"SELECT {_COLUMNS} FROM terminal WHERE token_hash = :hash"  # noqa: S608
    return reader.one(Terminal, sql, {"hash": token_hash})


def get_terminal(reader: Reader, terminal_id: str) -> Terminal:
    """The terminal of that id, or NotFound."""
    return known(reader.one(Terminal, _BY_ID, {"id": terminal_id}))


def get_portal_terminal(reader: Reader) -> Terminal | None:
    """The one that stands for check-ins from the portal, once there was one."""
    return reader.one(Terminal, _BY_ID, {"id": PORTAL_TERMINAL_ID})


def insert_portal_terminal(tx: Transaction) -> None:
    """Add it: it has no token, so nobody can speak in its name."""
    tx.insert("terminal", {"id": PORTAL_TERMINAL_ID, "name": "Portail", "created_at": tx.now})


def list_terminals(reader: Reader) -> list[Terminal]:
    """Every terminal at a door, newest last."""
    sql = f"SELECT {_COLUMNS} FROM terminal WHERE id <> :portal ORDER BY created_at, id"  # noqa: S608
    return [Terminal(*row) for row in reader.rows(sql, {"portal": PORTAL_TERMINAL_ID})]


def touch_terminal(tx: Transaction, terminal_id: str, version: str | None = None) -> None:
    """Remember that it was heard of now, and what it said of itself if it did."""
    sql = """UPDATE terminal SET last_seen_at = :now, version = coalesce(:version, version)
             WHERE id = :id"""
    tx.execute(sql, {"now": tx.now, "id": terminal_id, "version": version})


def list_wrong_codes(reader: Reader, terminal_id: str, *, since: int) -> list[int]:
    """When wrong codes were typed on it, from `since` on: the latest ten at most."""
    kept = reader.value("SELECT wrong_codes FROM terminal WHERE id = :id", {"id": terminal_id})
    return [at for at in json.loads(kept or "[]") if since < at <= reader.now]
