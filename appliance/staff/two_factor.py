"""Two-factor sign-in with TOTP and recovery codes (docs/security.md, S7, S9)."""

import base64
import hmac
import unicodedata
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP

from appliance.core.errors import ChangedMeanwhile, CodeLater, OfferOver
from appliance.core.tokens import ACCESS_CODE_ALPHABET, Keyring, account_hash, hash_token
from appliance.database.connection import Reader, Transaction, known
from appliance.staff.audit_log import CONSOLE, NOBODY, record_audit
from appliance.staff.model import find_staff
from appliance.staff.sign_in import OpenedSession, Try, count_try, open_session, still_fits

RECOVERY_CODES = 10
OFFER_MILLISECONDS = 15 * 60_000
ASKED_MILLISECONDS = 5 * 60_000


@dataclass(frozen=True, slots=True)
class TwoFactor:
    """An account's encrypted TOTP secret. Times are in ms since 1970.

    `since` is when the secret was confirmed. If it is None, the secret was only offered, and
    sign-in needs no code.
    """

    wrapped: bytes
    offered_at: int
    since: int | None


def normalise_recovery_code(typed: str) -> str:
    """Convert a typed recovery code to the form that is hashed: upper case, without separators."""
    return "".join(c for c in typed.upper() if c in ACCESS_CODE_ALPHABET)


SECRET_BYTES = 20  # as long as the output of HMAC-SHA-1 (RFC 4226, section 4)
STEP_MILLISECONDS = 30_000
_DIGITS = 6
_SHA1 = SHA1()  # noqa: S303 - the hash that all authenticator apps support
_LABEL_MAX = 30  # in characters; a longer label would make the QR code hard to scan


def totp_code(secret: bytes, step: int) -> str:
    """Return the six-digit code for a time step (RFC 6238)."""
    return HOTP(secret, _DIGITS, _SHA1).generate(step).decode()


def matching_steps(secret: bytes, typed: str, now: int) -> list[int]:
    """Return the time steps whose code is `typed`.

    Only the step at `now` (ms since 1970), the previous step and the next step are compared.
    """
    code, present = _read_code(typed), now // STEP_MILLISECONDS
    near = range(max(present - 1, 0), present + 2)
    return [step for step in near if hmac.compare_digest(totp_code(secret, step), code)]


def spell_secret(secret: bytes) -> str:
    """Return a secret as Base32 in groups of four, for typing it into the authenticator app."""
    letters = base64.b32encode(secret).decode().rstrip("=")
    return " ".join(letters[i : i + 4] for i in range(0, len(letters), 4))


def app_address(secret: bytes, issuer: str, account: str) -> str:
    """Return the `otpauth://` URL for the QR code that the authenticator app scans.

    Apps show a `+` as it is, so blanks are `%20`. They split the label at its first colon, so the
    names have none.
    """
    issuer, account = (
        quote(" ".join(name.replace(":", " ").split())[:_LABEL_MAX], safe="")
        for name in (issuer, account)
    )
    encoded = base64.b32encode(secret).decode().rstrip("=")
    period = STEP_MILLISECONDS // 1000
    return (
        f"otpauth://totp/{issuer}:{account}?secret={encoded}&issuer={issuer}"
        f"&algorithm=SHA1&digits={_DIGITS}&period={period}"
    )


def _read_code(typed: str) -> str:
    """Convert digits in any script to ASCII, remove spaces, and replace the rest with `?`."""
    return "".join(str(unicodedata.decimal(c, "?")) for c in typed if not c.isspace())


_KEPT_STEPS = 2880  # used steps are remembered for a day, which has 2880 steps of 30 s


def find_two_factor(reader: Reader, staff_id: str) -> TwoFactor | None:
    """Return the account's TOTP secret, confirmed or not. Return None if it has none."""
    sql = "SELECT secret, offered_at, since FROM two_factor WHERE staff_id = :id"
    return reader.one(TwoFactor, sql, {"id": staff_id})


def has_two_factor(reader: Reader, staff_id: str) -> bool:
    """Whether an account has two-factor sign-in turned on."""
    found = find_two_factor(reader, staff_id)
    return found is not None and found.since is not None


def list_two_factor(reader: Reader) -> set[str]:
    """Return the ids of the accounts that have two-factor sign-in turned on."""
    return {id_ for (id_,) in reader.rows("SELECT staff_id FROM two_factor WHERE since NOT NULL")}


def spend_step(tx: Transaction, staff_id: str, step: int) -> bool:
    """Mark a time step as used, so that its code works only once.

    Return False if it was used before.
    """
    spent = {"id": staff_id, "step": step}
    sql = "INSERT INTO staff_spent_step (staff_id, step) VALUES (:id, :step) ON CONFLICT DO NOTHING"
    is_first = tx.execute(sql, spent) > 0
    sql = "DELETE FROM staff_spent_step WHERE staff_id = :id AND step < :step"
    tx.execute(sql, {**spent, "step": step - _KEPT_STEPS})
    return is_first


def count_recovery_codes(reader: Reader, staff_id: str) -> int:
    """Return how many unused recovery codes the account has."""
    sql = "SELECT count(*) FROM staff_recovery_code WHERE staff_id = :id"
    return int(reader.value(sql, {"id": staff_id}))


def offer_two_factor(tx: Transaction, keyring: Keyring, staff_id: str) -> bytes:
    """Store and return a new TOTP secret. `confirm_two_factor` must confirm it before it is used.

    Raises ChangedMeanwhile if two-factor sign-in is already turned on.
    """
    if has_two_factor(tx, staff_id):
        raise ChangedMeanwhile
    secret = tx.tokens.random_bytes(SECRET_BYTES)
    sql = """INSERT INTO two_factor (staff_id, secret, offered_at) VALUES (:id, :secret, :now)
             ON CONFLICT DO UPDATE SET secret = :secret, offered_at = :now WHERE since IS NULL"""
    wrapped = keyring.wrap(secret, tx.tokens.random_bytes(12))
    tx.execute(sql, {"id": staff_id, "secret": wrapped, "now": tx.now})
    return secret


def offered_secret(reader: Reader, keyring: Keyring, staff_id: str) -> bytes:
    """Return the TOTP secret that was offered and is not confirmed yet.

    Raises OfferOver if none was offered in the last 15 minutes.
    """
    found = find_two_factor(reader, staff_id)
    if found is None or found.since is not None:
        raise OfferOver
    if not 0 <= reader.now - found.offered_at < OFFER_MILLISECONDS:
        raise OfferOver
    return keyring.unwrap(found.wrapped)


def confirm_two_factor(
    tx: Transaction, keyring: Keyring, staff_id: str, typed: str
) -> list[str] | None:
    """Turn on two-factor sign-in with the offered secret, and return the recovery codes.

    `typed` is a code from the authenticator app. Return None if it is wrong. Raises OfferOver if
    no secret was offered in the last 15 minutes.
    """
    steps = matching_steps(offered_secret(tx, keyring, staff_id), typed, tx.now)
    if not steps:
        return None
    for step in steps:
        spend_step(tx, staff_id, step)
    sql = "UPDATE two_factor SET since = :now WHERE staff_id = :id"
    tx.execute(sql, {"id": staff_id, "now": tx.now})
    codes = [tx.tokens.new_recovery_code() for _ in range(RECOVERY_CODES)]
    for code in codes:
        hashed = hash_token(normalise_recovery_code(code))
        tx.insert("staff_recovery_code", {"staff_id": staff_id, "hash": hashed})
    record_audit(tx, f"staff:{staff_id}", "second_step_added")
    return codes


def remove_two_factor(tx: Transaction, staff_id: str, *, actor: str = CONSOLE) -> bool:
    """Turn off two-factor sign-in for an account. Return whether it was on.

    Raises NotFound if the id is unknown.
    """
    known(find_staff(tx, staff_id))
    was_in_force = has_two_factor(tx, staff_id)
    for table in ("two_factor", "staff_spent_step", "staff_recovery_code", "staff_asked_code"):
        tx.execute(f"DELETE FROM {table} WHERE staff_id = :id", {"id": staff_id})  # noqa: S608
    if was_in_force:
        record_audit(tx, actor, "second_step_removed", person=staff_id)
    return was_in_force


class NoSession(Enum):
    """Why no session was opened.

    WRONG: the code is wrong. OVER: the form has already been used to sign in, or has expired (after
    5 minutes).
    """

    WRONG = 1
    OVER = 2


@dataclass(frozen=True, slots=True)
class GivenCode:
    """The submitted code form.

    `form` is the form's secret. `code` is from the authenticator app; if it is empty, `recovery`
    is a recovery code.
    """

    form: str
    code: str
    recovery: str


def pass_password(
    tx: Transaction, attempt: Try, device_secret: str | None, device: str
) -> OpenedSession | str | None:
    """Continue the sign-in after the right password: open a session, or require a code.

    If a code is required, return the secret that identifies the code form. Only its hash is stored.
    The attempt still counts as failed until the right code is entered. Return None if the account
    is unknown, or if it was disabled or its password changed during the comparison.
    """
    if attempt.person is None or not still_fits(tx, attempt):
        return None
    if not has_two_factor(tx, attempt.person.id):
        return open_session(tx, attempt, device_secret, device)
    secret = tx.tokens.new_link_secret()
    tx.execute("DELETE FROM staff_asked_code WHERE expires_at <= :now", {"now": tx.now})
    tx.insert(
        "staff_asked_code",
        {"hash": hash_token(secret), "staff_id": attempt.person.id, "device": attempt.device,
         "expires_at": tx.now + ASKED_MILLISECONDS, "is_counted": 1},
    )  # fmt: skip
    return secret


def verify_second_factor(
    tx: Transaction, keyring: Keyring, given: GivenCode, device_secret: str | None, device: str
) -> OpenedSession | NoSession:
    """Open a session if the code is right. Otherwise, return why no session was opened.

    The first code is part of the attempt that `begin_sign_in` has already counted. Each further
    code counts as another attempt. Raises CodeLater if the delay after earlier failures has not
    passed yet.
    """
    asked_hash = hash_token(given.form)
    sql = """SELECT staff_id, device, is_counted FROM staff_asked_code
             WHERE hash = :hash AND expires_at > :now AND expires_at <= :latest"""
    window = {"now": tx.now, "latest": tx.now + ASKED_MILLISECONDS}
    staff_id, device_hash, is_counted = tx.row(sql, {"hash": asked_hash, **window}) or ("", b"", 0)
    person = find_staff(tx, staff_id)
    if person is None or person.disabled_at is not None:
        return NoSession.OVER
    account = account_hash(person.name)
    if not is_counted:
        count_try(tx, account, device_hash, CodeLater)
    if not _is_right(tx, keyring, person.id, given):
        tx.execute(
            "UPDATE staff_asked_code SET is_counted = 0 WHERE hash = :hash", {"hash": asked_hash}
        )
        record_audit(tx, NOBODY, "wrong_code", person=person.id)
        return NoSession.WRONG
    tx.execute("DELETE FROM staff_asked_code WHERE hash = :hash", {"hash": asked_hash})
    return open_session(tx, Try(person, None, account, device_hash), device_secret, device)


def _is_right(tx: Transaction, keyring: Keyring, staff_id: str, given: GivenCode) -> bool:
    if given.code:
        return _is_code_of_app(tx, keyring, staff_id, given.code)
    code = hash_token(normalise_recovery_code(given.recovery))
    sql = "DELETE FROM staff_recovery_code WHERE staff_id = :id AND hash = :hash"
    if not tx.execute(sql, {"id": staff_id, "hash": code}):
        return False
    left = count_recovery_codes(tx, staff_id)
    record_audit(tx, f"staff:{staff_id}", "recovery_code_used", left=left)
    return True


def _is_code_of_app(tx: Transaction, keyring: Keyring, staff_id: str, typed: str) -> bool:
    found = find_two_factor(tx, staff_id)
    if found is None or found.since is None:
        return False
    steps = matching_steps(keyring.unwrap(found.wrapped), typed, tx.now)
    return any(spend_step(tx, staff_id, step) for step in steps)
