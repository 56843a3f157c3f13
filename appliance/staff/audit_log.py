"""The audit log of security events, linked by a hash chain (docs/security.md, S23)."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from appliance.database.connection import Reader, Row, Transaction

CONSOLE = "console"  # the actor of commands that are run on the machine
NOBODY = "nobody"  # the actor of unauthenticated requests
START = bytes(32)  # used as the previous hash for the first entry
_CHAINED = "seq, at, actor, what, detail"
_BATCH = 5000


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry in the audit log. `at` is in ms since 1970.

    `actor` has one of the forms that `record_audit` lists.
    """

    seq: int
    at: int
    actor: str
    what: str
    detail: dict[str, Any]


def record_audit(tx: Transaction, actor: str, what: str, /, **detail: Any) -> None:
    """Append an entry to the audit log (docs/security.md, S23).

    `actor` is `staff:<id>`, `key:<id>`, `terminal:<id>`, `box`, CONSOLE or NOBODY. `detail` may
    contain ids and the names of the venue's own objects. It must not contain secrets, guests'
    data, or rejected input, because someone may have typed a password by mistake.
    """
    last = tx.row("SELECT seq, hash FROM security_log ORDER BY seq DESC LIMIT 1")
    seq, previous = (1, START) if last is None else (last[0] + 1, last[1])
    text = json.dumps(detail, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    row = {"seq": seq, "at": tx.now, "actor": actor, "what": what, "detail": text}
    tx.insert("security_log", {**row, "hash": _chain(previous, tuple(row.values()))})


def list_audit_entries(
    reader: Reader, limit: int, *, before: int | None = None
) -> list[AuditEntry]:
    """Return up to `limit` entries, newest first.

    If `before` is set, return only entries whose `seq` is lower. For the next page, pass the `seq`
    of the last entry.
    """
    sql = f"""SELECT {_CHAINED} FROM security_log
              WHERE :before IS NULL OR seq < :before ORDER BY seq DESC LIMIT :limit"""  # noqa: S608
    rows = reader.rows(sql, {"before": before, "limit": limit})
    return [AuditEntry(*(*columns, json.loads(detail))) for *columns, detail in rows]


def find_broken_audit_link(reader: Reader) -> int | None:
    """Return the `seq` of the first entry that breaks the hash chain, or None if none does.

    If old entries were deleted, the first remaining entry cannot be checked.
    """
    rows = reader.rows(f"SELECT hash, {_CHAINED} FROM security_log ORDER BY seq")  # noqa: S608
    return find_break(rows, _chain)


def find_old_audit_entries(reader: Reader, before: int) -> list[tuple[int, ...]]:
    """Return the keys (`seq`,) of up to 5000 entries that may be deleted, oldest first.

    Stop at the first entry whose time is at or after `before` (ms since 1970). The log's last entry
    is never returned, because the hash of the next new entry depends on it.
    """
    sql = """SELECT seq FROM security_log
             WHERE seq < coalesce(
                 (SELECT min(seq) FROM security_log WHERE at >= :before),
                 (SELECT max(seq) FROM security_log))
             ORDER BY seq LIMIT :limit"""
    return list(reader.rows(sql, {"before": before, "limit": _BATCH}))


def drop_audit_entries(tx: Transaction, keys: Sequence[tuple[int, ...]]) -> None:
    """Delete the entries whose keys `find_old_audit_entries` returned."""
    tx.execute_each("DELETE FROM security_log WHERE seq = ?", keys)


def _chain(previous: bytes, row: Sequence[Any]) -> bytes:
    text = json.dumps(list(row), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(previous + text.encode()).digest()


def find_break(rows: Iterable[Row], chain: Callable[[bytes, list[Any]], bytes]) -> int | None:
    """Return the `seq` of the first row that breaks the hash chain, or None if none does.

    Each row is (hash, seq, …). If the first row's `seq` is not 1, older rows were deleted, so its
    hash cannot be checked.
    """
    previous = None
    for found, *row in rows:
        can_be_checked = previous is not None or row[0] == 1
        if can_be_checked and found != chain(previous or START, row):
            return int(row[0])
        previous = found
    return None
