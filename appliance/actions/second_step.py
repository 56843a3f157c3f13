"""Add and remove the second step of somebody's sign-in (docs/security.md, S7)."""

from appliance.actions.note_security import CONSOLE, note_security
from appliance.house_errors import ChangedMeanwhile, OfferOver
from appliance.model.second_step import OFFER_MILLISECONDS, RECOVERY_CODES, tidy_recovery_code
from appliance.model.totp import SECRET_BYTES, fitting_steps
from appliance.store.connection import Reader, Transaction, known
from appliance.store.second_steps import (
    delete_second_step,
    find_second_step,
    has_second_step,
    spend_step,
)
from appliance.store.staff import find_staff
from appliance.tokens import Keyring, hash_token


def offer_second_step(tx: Transaction, keyring: Keyring, staff_id: str) -> bytes:
    """A fresh secret for an app; nothing is asked for until a code of it was right.

    ChangedMeanwhile when a second step is in force already.
    """
    if has_second_step(tx, staff_id):
        raise ChangedMeanwhile
    secret = tx.tokens.random_bytes(SECRET_BYTES)
    sql = """INSERT INTO second_step (staff_id, secret, offered_at) VALUES (:id, :secret, :now)
             ON CONFLICT DO UPDATE SET secret = :secret, offered_at = :now WHERE since IS NULL"""
    wrapped = keyring.wrap(secret, tx.tokens.random_bytes(12))
    tx.execute(sql, {"id": staff_id, "secret": wrapped, "now": tx.now})
    return secret


def offered_secret(reader: Reader, keyring: Keyring, staff_id: str) -> bytes:
    """What that person was offered in the last quarter of an hour; OfferOver."""
    found = find_second_step(reader, staff_id)
    if found is None or found.since is not None:
        raise OfferOver
    if not 0 <= reader.now - found.offered_at < OFFER_MILLISECONDS:
        raise OfferOver
    return keyring.unwrap(found.wrapped)


def confirm_second_step(
    tx: Transaction, keyring: Keyring, staff_id: str, typed: str
) -> list[str] | None:
    """In force from now on: the recovery codes, shown this once. None for a wrong code.

    OfferOver when nothing is offered any more.
    """
    steps = fitting_steps(offered_secret(tx, keyring, staff_id), typed, tx.now)
    if not steps:
        return None
    for step in steps:
        spend_step(tx, staff_id, step)
    sql = "UPDATE second_step SET since = :now WHERE staff_id = :id"
    tx.execute(sql, {"id": staff_id, "now": tx.now})
    codes = [tx.tokens.new_recovery_code() for _ in range(RECOVERY_CODES)]
    for code in codes:
        hashed = hash_token(tidy_recovery_code(code))
        tx.insert("recovery_code", {"staff_id": staff_id, "hash": hashed})
    note_security(tx, f"staff:{staff_id}", "second_step_added")
    return codes


def remove_second_step(tx: Transaction, staff_id: str, *, actor: str = CONSOLE) -> bool:
    """The password alone is asked for again; whether there was a second step. NotFound."""
    known(find_staff(tx, staff_id))
    was_in_force = has_second_step(tx, staff_id)
    delete_second_step(tx, staff_id)
    if was_in_force:
        note_security(tx, actor, "second_step_removed", person=staff_id)
    return was_in_force
