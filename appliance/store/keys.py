"""Rows of `api_key`: found by hash, listed, issued, revoked."""

from functools import lru_cache

from appliance.model.api_key import ApiKey
from appliance.store.connection import Reader, Transaction

_COLUMNS = """
    id, lineage, name, prefix, last_four, scopes, created_at, last_used_at, abs(revoked_at),
    revoked_at < 0
"""
_MINUTE = 60_000


def find_key_by_hash(reader: Reader, hash: bytes) -> ApiKey | None:  # noqa: A002 - the column's name
    """The key whose SHA-256 is `hash`, revoked ones too: `revoked_at` tells."""
    return _one(reader, "hash = :value", hash)


def find_key(reader: Reader, key_id: str) -> ApiKey | None:
    """The key of that id."""
    return _one(reader, "id = :value", key_id)


def list_keys(reader: Reader) -> list[ApiKey]:
    """Every key, oldest first, revoked ones too."""
    rows = reader.rows(f"SELECT {_COLUMNS} FROM api_key ORDER BY created_at, id")  # noqa: S608
    return [_key(row) for row in rows]


def touch_key(tx: Transaction, key_id: str) -> None:
    """Remember that the key is in use, to the minute: most calls change no row."""
    sql = """UPDATE api_key SET last_used_at = :now
             WHERE id = :id AND (last_used_at IS NULL OR abs(:now - last_used_at) >= :minute)"""
    tx.execute(sql, {"id": key_id, "now": tx.now, "minute": _MINUTE})


def mark_key_revoked(tx: Transaction, key_id: str) -> None:
    """Revoke for good; a key that was revoked, or has ended, keeps its instant."""
    sql = """UPDATE api_key SET revoked_at = min(:now, coalesce(-revoked_at, :now))
             WHERE id = :id AND (revoked_at IS NULL OR revoked_at < 0)"""
    tx.execute(sql, {"id": key_id, "now": tx.now})


def _one(reader: Reader, condition: str, value: object) -> ApiKey | None:
    row = reader.row(f"SELECT {_COLUMNS} FROM api_key WHERE {condition}", {"value": value})  # noqa: S608
    return None if row is None else _key(row)


@lru_cache(maxsize=256)
def _key(row: tuple[object, ...]) -> ApiKey:
    """The key that a row says; each call of a partner reads the same row again."""
    id_, lineage, name, prefix, last_four, scopes, created, used, revoked, over = row
    granted = tuple(str(scopes).split())
    return ApiKey(id_, lineage, name, prefix, last_four, granted, created, used, revoked, over == 1)  # type: ignore[arg-type]
