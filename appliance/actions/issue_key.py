"""Issue an API key: shown once, stored as its SHA-256 (interface, section 5)."""

from collections.abc import Collection
from dataclasses import dataclass

from appliance.actions.note_security import CONSOLE, note_security
from appliance.environment import EnvironmentName
from appliance.errors import Trouble
from appliance.model.api_key import SCOPES
from appliance.store.connection import Transaction
from appliance.store.keys import find_key
from appliance.tokens import hash_token

_RECOGNISABLE = len("svc_live_") + 4


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A fresh key. `key` is known here and to whoever is told, and never again."""

    id: str
    key: str
    scopes: tuple[str, ...]


def issue_key(
    tx: Transaction, environment_name: EnvironmentName, name: str, scopes: Collection[str] = SCOPES,
    *, successor_of: str | None = None, actor: str = CONSOLE,
) -> IssuedKey:  # fmt: skip
    """A key of that environment with `scopes`, which are members of SCOPES.

    A successor inherits its predecessor's lineage: the right to cancel, the replays and
    the externalRefs. The predecessor lives on until it is revoked.
    Trouble when there is no key `successor_of`.
    """
    key_id = tx.new_id()
    lineage = key_id if successor_of is None else _lineage(tx, successor_of)
    key = tx.tokens.new_api_key(environment_name)
    granted = tuple(scope for scope in SCOPES if scope in scopes)
    scopes_text = " ".join(granted)
    tx.insert(
        "api_key",
        {"id": key_id, "lineage": lineage, "name": name, "hash": hash_token(key),
         "prefix": key[:_RECOGNISABLE], "last_four": key[-4:], "scopes": scopes_text,
         "created_at": tx.now},
    )  # fmt: skip
    note_security(tx, actor, "key_issued", key=key_id, name=name, scopes=scopes_text)
    return IssuedKey(key_id, key, granted)


def _lineage(tx: Transaction, predecessor_id: str) -> str:
    predecessor = find_key(tx, predecessor_id)
    if predecessor is None:
        raise Trouble(f"there is no key {predecessor_id}: venuebox key list shows them")
    return predecessor.lineage
