"""The audit log of security events (docs/security.md, S23)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from appliance.database.connection import Reader, Transaction

CONSOLE = "console"  # the actor of commands that are run on the machine
NOBODY = "nobody"  # the actor of unauthenticated requests
AUDIT_DAYS = 180  # how long entries are kept
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
    text = json.dumps(detail, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    row = {"at": tx.now, "actor": actor, "what": what, "detail": text}
    tx.insert("audit_log", row)


def list_audit_entries(
    reader: Reader, limit: int, *, before: int | None = None
) -> list[AuditEntry]:
    """Return up to `limit` entries, newest first.

    If `before` is set, return only entries whose `seq` is lower. For the next page, pass the `seq`
    of the last entry.
    """
    sql = """SELECT seq, at, actor, what, detail FROM audit_log
             WHERE :before IS NULL OR seq < :before ORDER BY seq DESC LIMIT :limit"""
    rows = reader.rows(sql, {"before": before, "limit": limit})
    return [AuditEntry(*(*columns, json.loads(detail))) for *columns, detail in rows]


def find_old_audit_entries(reader: Reader, before: int) -> list[tuple[int, ...]]:
    """Return the keys (`seq`,) of up to 5000 entries from before `before` (ms since 1970)."""
    sql = "SELECT seq FROM audit_log WHERE at < :before LIMIT :limit"
    return list(reader.rows(sql, {"before": before, "limit": _BATCH}))


def drop_audit_entries(tx: Transaction, keys: Sequence[tuple[int, ...]]) -> None:
    """Delete the entries whose keys `find_old_audit_entries` returned."""
    tx.execute_each("DELETE FROM audit_log WHERE seq = ?", keys)
