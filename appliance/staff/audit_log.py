"""The audit log: security events, linked by a hash chain (docs/security.md, S23)."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from appliance.database.connection import Reader, Row, Transaction

CONSOLE = "console"  # a command on the machine
NOBODY = "nobody"  # an unauthenticated person
START = bytes(32)  # the hash before the first entry
_CHAINED = "seq, at, actor, what, detail"
_BATCH = 5000


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry. `actor` is as in `record_audit`; `at` is in ms since 1970."""

    seq: int
    at: int
    actor: str
    what: str
    detail: dict[str, Any]


def record_audit(tx: Transaction, actor: str, what: str, /, **detail: Any) -> None:
    """Append an entry to the audit log (docs/security.md, S23).

    `actor` is `staff:<id>`, `key:<id>`, `terminal:<id>`, `box`, CONSOLE or NOBODY. `detail`
    has ids and names of the venue's own objects: no secrets, guests or mistyped input.
    """
    last = tx.row("SELECT seq, hash FROM security_log ORDER BY seq DESC LIMIT 1")
    seq, previous = (1, START) if last is None else (last[0] + 1, last[1])
    text = json.dumps(detail, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    row = {"seq": seq, "at": tx.now, "actor": actor, "what": what, "detail": text}
    tx.insert("security_log", {**row, "hash": _chain(previous, tuple(row.values()))})


def list_audit_entries(
    reader: Reader, limit: int, *, before: int | None = None
) -> list[AuditEntry]:
    """Return up to `limit` entries, newest first; `before` is an entry number, for paging."""
    sql = f"""SELECT {_CHAINED} FROM security_log
              WHERE :before IS NULL OR seq < :before ORDER BY seq DESC LIMIT :limit"""  # noqa: S608
    rows = reader.rows(sql, {"before": before, "limit": limit})
    return [AuditEntry(*(*columns, json.loads(detail))) for *columns, detail in rows]


def find_broken_audit_link(reader: Reader) -> int | None:
    """Return the number of the first entry that breaks the hash chain, or None.

    If old entries were deleted, the first remaining one is not checked.
    """
    rows = reader.rows(f"SELECT hash, {_CHAINED} FROM security_log ORDER BY seq")  # noqa: S608
    return find_break(rows, _chain)


def find_old_audit_entries(reader: Reader, before: int) -> list[tuple[int, ...]]:
    """Return the leading entries older than `before` (ms), but never the last entry."""
    sql = """SELECT seq FROM security_log
             WHERE seq < coalesce(
                 (SELECT min(seq) FROM security_log WHERE at >= :before),
                 (SELECT max(seq) FROM security_log))
             ORDER BY seq LIMIT :limit"""
    return list(reader.rows(sql, {"before": before, "limit": _BATCH}))


def drop_audit_entries(tx: Transaction, keys: Sequence[tuple[int, ...]]) -> None:
    """Delete these entries."""
    tx.execute_each("DELETE FROM security_log WHERE seq = ?", keys)


def _chain(previous: bytes, row: Sequence[Any]) -> bytes:
    text = json.dumps(list(row), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(previous + text.encode()).digest()


def find_break(rows: Iterable[Row], chain: Callable[[bytes, list[Any]], bytes]) -> int | None:
    """Return the seq of the first of `rows` (hash, seq, …) that breaks the chain, or None.

    If the first row is not number 1, older rows were deleted, and its hash is not checked.
    """
    previous = None
    for found, *row in rows:
        can_be_checked = previous is not None or row[0] == 1
        if can_be_checked and found != chain(previous or START, row):
            return int(row[0])
        previous = found
    return None
