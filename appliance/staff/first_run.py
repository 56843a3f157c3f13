"""First-run setup: a one-time link creates the first owner (docs/security.md, S8)."""

import json
from dataclasses import dataclass

from appliance.core.tokens import hash_token
from appliance.database.connection import Reader, Transaction
from appliance.staff.audit_log import record_audit
from appliance.staff.model import has_owner
from appliance.staff.sign_in import OpenedSession, start_session


@dataclass(frozen=True, slots=True)
class Setup:
    """The state of the setup. `closed`: only the setup page is served until an owner exists."""

    closed: bool
    steps: tuple[str, ...]


def find_setup(reader: Reader) -> Setup | None:
    """Return the state of the setup, or None if it was never begun."""
    row = reader.row("SELECT closed, steps FROM setup")
    return None if row is None else Setup(bool(row[0]), tuple(json.loads(row[1])))


def is_closed(reader: Reader) -> bool:
    """Whether the box is closed because it has no owner. One statement, so it may be cached."""
    sql = """SELECT 1 FROM setup WHERE closed = 1 AND NOT EXISTS (
                 SELECT 1 FROM staff
                 WHERE role = 'owner' AND password IS NOT NULL AND disabled_at IS NULL)"""
    return reader.row(sql) is not None


def begin_setup(tx: Transaction, *, closed: bool) -> None:
    """Insert the setup row unless it exists."""
    sql = "INSERT INTO setup (id, closed) VALUES (1, :closed) ON CONFLICT DO NOTHING"
    tx.execute(sql, {"closed": int(closed)})


def set_setup_link(tx: Transaction, link_hash: bytes | None, expires_at: int | None) -> None:
    """Set the only valid setup link and its expiry (ms since 1970)."""
    sql = "UPDATE setup SET link_hash = :hash, link_expires_at = :expires_at"
    tx.execute(sql, {"hash": link_hash, "expires_at": expires_at})


def is_setup_link(reader: Reader, link_hash: bytes) -> bool:
    """Whether the setup link is valid now."""
    sql = "SELECT 1 FROM setup WHERE link_hash = :hash AND link_expires_at > :now"
    return reader.row(sql, {"hash": link_hash, "now": reader.now}) is not None


SETUP_LINK_MILLISECONDS = 30 * 60 * 1000
STEPS = ("venue", "tables", "slots", "mail", "address", "phone")


def offer_setup(tx: Transaction) -> str | None:
    """Return the secret of a new setup link, or None if there is an owner.

    The link works once, for 30 minutes. Earlier links are revoked.
    """
    if has_owner(tx):
        return None
    begin_setup(tx, closed=False)
    secret = tx.tokens.new_link_secret()
    set_setup_link(tx, hash_token(secret), tx.now + SETUP_LINK_MILLISECONDS)
    return secret


def create_first_owner(
    tx: Transaction, link_hash: bytes, name: str, password_hash: str,
    *, language: str, device_secret: str | None = None, device: str = "",
) -> OpenedSession | None:  # fmt: skip
    """Create the first owner and sign in; None if the link is used, expired or unknown.

    Of two concurrent requests, only one succeeds.
    """
    if has_owner(tx) or not is_setup_link(tx, link_hash):
        return None
    set_setup_link(tx, None, None)
    # Disable an account of that name that was invited from the console meanwhile.
    sql = """UPDATE staff SET disabled_at = :now
             WHERE name = :name COLLATE NOCASE AND disabled_at IS NULL"""
    tx.execute(sql, {"now": tx.now, "name": name})
    staff_id = tx.new_id()
    tx.insert(
        "staff",
        {"id": staff_id, "name": name, "role": "owner", "password": password_hash,
         "language": language, "created_at": tx.now},
    )  # fmt: skip
    record_audit(tx, f"staff:{staff_id}", "box_founded", person=staff_id, role="owner")
    return start_session(tx, staff_id, device_secret, device)


def close_setup(tx: Transaction) -> None:
    """Mark all STEPS as done or skipped."""
    tx.execute("UPDATE setup SET steps = :steps", {"steps": json.dumps(STEPS)})
