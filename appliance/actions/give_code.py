"""After a right password: open a session, or ask for a code first (docs/security.md, S7, S9)."""

from dataclasses import dataclass
from enum import Enum

from appliance.actions.note_security import NOBODY, note_security
from appliance.actions.sign_in import OpenedSession, Try, count_try, open_session, still_fits
from appliance.house_errors import CodeLater
from appliance.model.second_step import tidy_recovery_code
from appliance.model.totp import fitting_steps
from appliance.store.connection import Transaction
from appliance.store.second_steps import (
    count_recovery_codes,
    find_asked_code,
    find_second_step,
    has_second_step,
    insert_asked_code,
    spend_recovery_code,
    spend_step,
)
from appliance.store.staff import find_staff
from appliance.tokens import Keyring, account_hash, hash_token


@dataclass(frozen=True, slots=True)
class CodeAsked:
    """The secret of the form on which the code is given; it is stored nowhere."""

    secret: str


class NoSession(Enum):
    """Why a code opens none: it is wrong, or the form is older than five minutes or used."""

    WRONG = 1
    OVER = 2


@dataclass(frozen=True, slots=True)
class GivenCode:
    """What was sent with the form: a code of the app, or else a recovery code."""

    form: str
    code: str
    recovery: str


def pass_password(
    tx: Transaction, attempt: Try, device_secret: str | None, device: str
) -> OpenedSession | CodeAsked | None:
    """The password was right: a session, unless that person has a second step.

    Until the code is right, the try stays counted as a wrong one. None where the password was
    changed while it was compared.
    """
    if attempt.person is None or not still_fits(tx, attempt):
        return None
    if not has_second_step(tx, attempt.person.id):
        return open_session(tx, attempt, device_secret, device)
    secret = tx.tokens.new_link_secret()
    insert_asked_code(tx, hash_token(secret), attempt.person.id, attempt.device)
    return CodeAsked(secret)


def give_code(
    tx: Transaction, keyring: Keyring, given: GivenCode, device_secret: str | None, device: str
) -> OpenedSession | NoSession:
    """A session for a right code. The first one belongs to the try of the password.

    Each further one counts as a wrong password does; CodeLater after too many.
    """
    asked_hash = hash_token(given.form)
    asked = find_asked_code(tx, asked_hash)
    person = None if asked is None else find_staff(tx, asked.staff_id)
    if asked is None or person is None or person.disabled_at is not None:
        return NoSession.OVER
    account = account_hash(person.name)
    if not asked.is_counted:
        count_try(tx, account, asked.device, CodeLater)
    if not _is_right(tx, keyring, person.id, given):
        # The next one is a try of its own.
        tx.execute("UPDATE asked_code SET is_counted = 0 WHERE hash = :hash", {"hash": asked_hash})
        note_security(tx, NOBODY, "wrong_code", person=person.id)
        return NoSession.WRONG
    tx.execute("DELETE FROM asked_code WHERE hash = :hash", {"hash": asked_hash})
    return open_session(tx, Try(person, None, account, asked.device), device_secret, device)


def _is_right(tx: Transaction, keyring: Keyring, staff_id: str, given: GivenCode) -> bool:
    if given.code:
        return _is_code_of_app(tx, keyring, staff_id, given.code)
    code = hash_token(tidy_recovery_code(given.recovery))
    if not spend_recovery_code(tx, staff_id, code):
        return False
    left = count_recovery_codes(tx, staff_id)
    note_security(tx, f"staff:{staff_id}", "recovery_code_used", left=left)
    return True


def _is_code_of_app(tx: Transaction, keyring: Keyring, staff_id: str, typed: str) -> bool:
    found = find_second_step(tx, staff_id)
    if found is None or found.since is None:
        return False
    steps = fitting_steps(keyring.unwrap(found.wrapped), typed, tx.now)
    return any(spend_step(tx, staff_id, step) for step in steps)
