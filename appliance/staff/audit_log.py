"""The audit log: changes of rights, chained by hash (docs/security.md, S23)."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from appliance.database.connection import Reader, Row, Transaction

_CHAINED = "seq, at, actor, what, detail"
FOUND = 5000


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line. `actor` is as in `history`, or `console`, `nobody`; `at` in ms since 1970."""

    seq: int
    at: int
    actor: str
    what: str
    detail: dict[str, Any]


def add_audit_entry(tx: Transaction, actor: str, what: str, detail: dict[str, Any]) -> int:
    """Append a line at `tx.now`; its number."""
    last = tx.row("SELECT seq, hash FROM security_log ORDER BY seq DESC LIMIT 1")
    seq, previous = (1, START) if last is None else (last[0] + 1, last[1])
    words = json.dumps(detail, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    row = {"seq": seq, "at": tx.now, "actor": actor, "what": what, "detail": words}
    tx.insert("security_log", {**row, "hash": _chain(previous, tuple(row.values()))})
    return int(seq)


def list_audit_entries(
    reader: Reader, limit: int, *, before: int | None = None
) -> list[AuditEntry]:
    """The newest first; `before` is a number, for the next page."""
    sql = f"""SELECT {_CHAINED} FROM security_log
              WHERE :before IS NULL OR seq < :before ORDER BY seq DESC LIMIT :limit"""  # noqa: S608
    rows = reader.rows(sql, {"before": before, "limit": limit})
    return [
        AuditEntry(seq, at, actor, what, json.loads(detail))
        for seq, at, actor, what, detail in rows
    ]


def find_broken_audit_link(reader: Reader) -> int | None:
    """The first line that does not follow from the one before, or None.

    Where old lines were removed, the first that is kept is taken at its word.
    """
    rows = reader.rows(f"SELECT hash, {_CHAINED} FROM security_log ORDER BY seq")  # noqa: S608
    return find_break(rows, _chain)


def find_old_audit_entries(reader: Reader, before: int) -> list[tuple[int, ...]]:
    """Lines that stand before any of that instant or later; the last of all stays."""
    sql = """SELECT seq FROM security_log
             WHERE seq < coalesce(
                 (SELECT min(seq) FROM security_log WHERE at >= :before),
                 (SELECT max(seq) FROM security_log))
             ORDER BY seq LIMIT :limit"""
    return list(reader.rows(sql, {"before": before, "limit": FOUND}))


def drop_audit_entries(tx: Transaction, keys: Sequence[tuple[int, ...]]) -> None:
    """Forget these lines."""
    tx.execute_each("DELETE FROM security_log WHERE seq = ?", keys)


def _chain(previous: bytes, row: Sequence[Any]) -> bytes:
    line = json.dumps(list(row), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(previous + line.encode()).digest()


CONSOLE = "console"  # a command at the machine itself
NOBODY = "nobody"  # somebody who did not show who they are


def record_audit(tx: Transaction, actor: str, what: str, /, **detail: Any) -> None:
    """One line of the security log (docs/security.md, S23).

    `actor` is `staff:<id>`, `key:<id>`, `terminal:<id>`, `box`, CONSOLE or NOBODY. `detail`
    holds ids and names of the house's own things: no secret, no guest, nothing mistyped.
    """
    add_audit_entry(tx, actor, what, detail)


START = bytes(32)


def find_break(rows: Iterable[Row], chain: Callable[[bytes, list[Any]], bytes]) -> int | None:
    """The number of the first of `rows` (hash, seq, …) that does not `chain` to the one before."""
    previous = None
    for found, *row in rows:
        taken_at_its_word = previous is None and row[0] != 1
        if not taken_at_its_word and found != chain(previous or START, row):
            return int(row[0])
        previous = found
    return None
