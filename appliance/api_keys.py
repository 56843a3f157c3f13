"""API keys: issue, rotate and revoke them, and count their daily use (interface, section 5)."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from appliance.core.errors import OperatorError
from appliance.core.tokens import EnvironmentName, hash_token
from appliance.database.connection import Reader, Transaction, known
from appliance.staff.audit_log import CONSOLE, record_audit

SCOPES = (
    "venue:read",
    "availability:read",
    "reservations:read",
    "reservations:write",
    "webhooks:manage",
)
READ_ONLY_SCOPES = ("venue:read", "availability:read", "reservations:read")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A stored API key. Only the hash, prefix and last four characters of its secret are stored.

    A rotated key is valid until `expires_at` (ms since 1970). A key is invalid as soon as
    `revoked_at` is set, even if the clock shows an earlier time.
    """

    id: str
    lineage: str
    name: str
    prefix: str
    last_four: str
    scopes: tuple[str, ...]
    created_at: int
    last_used_at: int | None
    expires_at: int | None
    revoked_at: int | None

    @property
    def ends_at(self) -> int | None:
        """When the key was revoked or expires, in ms since 1970, or None."""
        return self.expires_at if self.revoked_at is None else self.revoked_at

    def is_revoked(self, now: int) -> bool:
        """Whether the key is refused at `now` (ms since 1970)."""
        return self.revoked_at is not None or (
            self.expires_at is not None and self.expires_at <= now
        )


_SELECT = """
    SELECT id, lineage, name, prefix, last_four, scopes, created_at, last_used_at,
           expires_at, revoked_at
    FROM api_key
"""


def find_key_by_hash(reader: Reader, hash: bytes) -> ApiKey | None:  # noqa: A002 - the column's name
    """Return the key whose SHA-256 is `hash`, even if it is revoked; None if there is none."""
    return reader.one(_key, f"{_SELECT} WHERE hash = :hash", {"hash": hash})


def find_key(reader: Reader, key_id: str) -> ApiKey | None:
    """Return the key with that id, or None."""
    return reader.one(_key, f"{_SELECT} WHERE id = :id", {"id": key_id})


def list_keys(reader: Reader) -> list[ApiKey]:
    """Return all keys, oldest first, including revoked keys."""
    return [_key(*row) for row in reader.rows(f"{_SELECT} ORDER BY created_at, id")]


@lru_cache(maxsize=256)
def _key(
    id_: str, lineage: str, name: str, prefix: str, last_four: str, scopes: str, *rest: Any
) -> ApiKey:
    """Return the ApiKey for a row.

    The results are cached, because every API call reads the row of its key.
    """
    return ApiKey(id_, lineage, name, prefix, last_four, tuple(scopes.split()), *rest)


def note_key_use(tx: Transaction, key_id: str) -> None:
    """Set when the key was last used."""
    tx.update("api_key", key_id, last_used_at=tx.now)


_RECOGNISABLE = len("svc_live_") + 4


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A newly issued key. `key` is the secret, which is not stored."""

    id: str
    key: str
    scopes: tuple[str, ...]


def issue_key(
    tx: Transaction, environment_name: EnvironmentName, name: str, scopes: Collection[str] = SCOPES,
    *, successor_of: str | None = None, actor: str = CONSOLE,
) -> IssuedKey:  # fmt: skip
    """Issue a key with `scopes`, which must be members of SCOPES.

    With `successor_of`, the new key gets that key's lineage. It can therefore cancel that key's
    reservations and see their idempotency keys and externalRefs. The old key itself does not
    change. Raises OperatorError if there is no key with the id `successor_of`.
    """
    key_id = tx.new_id()
    lineage = key_id
    if successor_of is not None:
        predecessor = find_key(tx, successor_of)
        if predecessor is None:
            raise OperatorError(
                f"there is no key {successor_of}. Run venuebox key list to see all keys."
            )
        lineage = predecessor.lineage
    key = tx.tokens.new_api_key(environment_name)
    granted = tuple(scope for scope in SCOPES if scope in scopes)
    scopes_text = " ".join(granted)
    tx.insert(
        "api_key",
        {"id": key_id, "lineage": lineage, "name": name, "hash": hash_token(key),
         "prefix": key[:_RECOGNISABLE], "last_four": key[-4:], "scopes": scopes_text,
         "created_at": tx.now},
    )  # fmt: skip
    record_audit(tx, actor, "key_issued", key=key_id, name=name, scopes=scopes_text)
    return IssuedKey(key_id, key, granted)


def revoke_key(tx: Transaction, key_id: str, *, actor: str = CONSOLE) -> bool:
    """Revoke a key permanently. Returns False if there is no such key.

    If the key is already revoked, its `revoked_at` does not change. A rotated key is revoked even
    if it has expired according to the calling command's clock, because the box's clock may differ.
    """
    key = find_key(tx, key_id)
    if key is None:
        return False
    if key.revoked_at is None:
        sql = """UPDATE api_key SET revoked_at = min(:now, coalesce(expires_at, :now))
                 WHERE id = :id"""
        tx.execute(sql, {"id": key_id, "now": tx.now})
        record_audit(tx, actor, "key_revoked", key=key_id, name=key.name)
    return True


_CHANGE_OVER_MS = 24 * 3600 * 1000


def rotate_key(
    tx: Transaction, environment_name: EnvironmentName, key_id: str,
    *, ends: bool, actor: str = CONSOLE,
) -> IssuedKey:  # fmt: skip
    """Issue a successor with the same name, scopes and lineage as key `key_id`.

    If `ends` is True, the old key expires in 24 hours, unless it was revoked or already expires
    earlier. Otherwise, the old key does not change. Raises NotFound if the key is unknown.
    """
    old = known(find_key(tx, key_id))
    issued = issue_key(tx, environment_name, old.name, old.scopes, successor_of=key_id, actor=actor)
    if ends:
        at = tx.now + _CHANGE_OVER_MS
        sql = """UPDATE api_key SET expires_at = min(:at, coalesce(expires_at, :at))
                 WHERE id = :id AND revoked_at IS NULL"""
        tx.execute(sql, {"id": key_id, "at": at})  # does not postpone an earlier expiry
        record_audit(tx, actor, "key_revoked", key=key_id, name=old.name, at=at)
    return issued
