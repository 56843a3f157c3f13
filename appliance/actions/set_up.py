"""The first start: a one-time link, and the first owner (docs/security.md, S8)."""

import json

from appliance.actions.note_security import note_security
from appliance.actions.sign_in import OpenedSession, start_session
from appliance.store.connection import Transaction
from appliance.store.setup import begin_setup, is_setup_link, set_setup_link
from appliance.store.staff import has_owner
from appliance.tokens import hash_token

SETUP_LINK_MILLISECONDS = 30 * 60 * 1000
STEPS = ("venue", "tables", "slots", "mail", "address", "phone")


def offer_setup(tx: Transaction) -> str | None:
    """The secret of a fresh link, good for 30 minutes and once; None when there is an owner.

    Every earlier link is dead.
    """
    if has_owner(tx):
        return None
    begin_setup(tx, closed=False)
    secret = tx.tokens.new_link_secret()
    set_setup_link(tx, hash_token(secret), tx.now + SETUP_LINK_MILLISECONDS)
    return secret


def found_owner(
    tx: Transaction, link_hash: bytes, name: str, password_hash: str,
    *, language: str, device_secret: str | None = None, device: str = "",
) -> OpenedSession | None:  # fmt: skip
    """The first owner, signed in; None when the link is used, over, or none of ours.

    Of two who send it at once, one becomes the owner.
    """
    if has_owner(tx) or not is_setup_link(tx, link_hash):
        return None
    set_setup_link(tx, None, None)
    # Somebody of that name who was invited from the console meanwhile makes room.
    sql = """UPDATE staff SET disabled_at = :now
             WHERE name = :name COLLATE NOCASE AND disabled_at IS NULL"""
    tx.execute(sql, {"now": tx.now, "name": name})
    staff_id = tx.new_id()
    tx.insert(
        "staff",
        {"id": staff_id, "name": name, "role": "owner", "password": password_hash,
         "language": language, "created_at": tx.now},
    )  # fmt: skip
    note_security(tx, f"staff:{staff_id}", "box_founded", person=staff_id, role="owner")
    return start_session(tx, staff_id, device_secret, device)


def close_setup(tx: Transaction) -> None:
    """Every step of STEPS is behind: done, or left for later."""
    tx.execute("UPDATE setup SET steps = :steps", {"steps": json.dumps(STEPS)})
