"""Sign-in and sessions (docs/security.md, S6).

Each sign-in attempt is counted as failed before its password is checked.
"""

from dataclasses import dataclass
from typing import Any

from appliance.clock import DAY_MS, MINUTE_MS
from appliance.core.errors import ChangedMeanwhile, SignInLater
from appliance.core.tokens import account_hash, hash_token
from appliance.database.connection import Reader, Transaction
from appliance.outbox import SessionEnded
from appliance.staff.audit_log import NOBODY, list_audit_entries, record_audit
from appliance.staff.model import (
    STAFF_COLUMNS,
    StaffMember,
    find_by_name,
    find_password,
    set_password,
)

IDLE_MILLISECONDS = 12 * 3600 * 1000  # long enough for a shift at the door
LONGEST_MILLISECONDS = 7 * DAY_MS
FREE_TRIES = 5
_FIRST_DELAY = 30_000
_LONGEST_DELAY = 15 * 60_000


@dataclass(frozen=True, slots=True)
class Session:
    """A staff member's session. Times are in ms since 1970.

    `id` identifies the session in lists and is not a secret.
    """

    id: str
    person: StaffMember
    device: str
    created_at: int
    seen_at: int

    def is_over(self, now: int) -> bool:
        """Whether, at `now`, the session has been idle for 12 hours or is 7 days old."""
        return (
            now - self.seen_at >= IDLE_MILLISECONDS or now - self.created_at >= LONGEST_MILLISECONDS
        )

    def is_due_for_touch(self, now: int) -> bool:
        """Whether `seen_at` should be updated, which is done at most once a minute."""
        return not 0 <= now - self.seen_at < MINUTE_MS


def sign_in_delay(wrong: int) -> int:
    """Return the delay in ms after `wrong` consecutive failed sign-ins (docs/security.md, S9).

    It is 0 for fewer than five failures and 30 s for five. Each further failure doubles it, up to
    15 minutes.
    """
    if wrong < FREE_TRIES:
        return 0
    return min(_FIRST_DELAY << min(wrong - FREE_TRIES, 10), _LONGEST_DELAY)


_COLUMNS = f"x.id, x.device, x.created_at, x.seen_at, {STAFF_COLUMNS}"
_IS_OVER = "seen_at <= :seen OR created_at <= :created"
_FROM = "session x JOIN staff s ON s.id = x.staff_id AND s.disabled_at IS NULL"


def find_session(reader: Reader, session_hash: bytes) -> Session | None:
    """Return the session whose cookie has this hash, even if the session has expired.

    Return None if no session's cookie has this hash, or if the account is disabled.
    """
    sql = f"SELECT {_COLUMNS} FROM {_FROM} WHERE x.hash = :hash"  # noqa: S608
    return reader.one(_session, sql, {"hash": session_hash})


def list_sessions(reader: Reader, staff_id: str) -> list[Session]:
    """Return an account's sessions, starting with the most recently used."""
    sql = f"SELECT {_COLUMNS} FROM {_FROM} WHERE x.staff_id = :id ORDER BY x.seen_at DESC"  # noqa: S608
    return [_session(*row) for row in reader.rows(sql, {"id": staff_id})]


def touch_session(tx: Transaction, session_id: str) -> None:
    """Set the session's `seen_at` to now."""
    tx.update("session", session_id, seen_at=tx.now)


def delete_session(tx: Transaction, staff_id: str, session_id: str) -> bool:
    """End one of an account's sessions. Return whether it existed."""
    return _end_sessions(tx, "id = :id", staff_id, session_id) > 0


def delete_sessions(tx: Transaction, staff_id: str, kept_id: str = "") -> int:
    """End an account's pending sign-ins, and all of its sessions except `kept_id`.

    Return the number of sessions ended.
    """
    tx.execute("DELETE FROM staff_asked_code WHERE staff_id = :id", {"id": staff_id})
    return _end_sessions(tx, "id <> :id", staff_id, kept_id)


def _end_sessions(tx: Transaction, condition: str, staff_id: str, session_id: str) -> int:
    sql = f"DELETE FROM session WHERE staff_id = :staff_id AND {condition} RETURNING id"  # noqa: S608
    rows = tx.rows(sql, {"staff_id": staff_id, "id": session_id})
    ended = [SessionEnded(found_id) for (found_id,) in rows]
    tx.notices.extend(ended)
    return len(ended)


def count_sessions(reader: Reader) -> dict[str, int]:
    """Return a map from staff id to the number of sessions that have not expired."""
    sql = f"SELECT staff_id, count(*) FROM session WHERE NOT ({_IS_OVER}) GROUP BY staff_id"  # noqa: S608
    return dict(reader.rows(sql, _expiry_limits(reader)))


def delete_old_sign_ins(tx: Transaction, guessed_before: int) -> None:
    """Delete expired sessions, and failed sign-ins before `guessed_before` (ms since 1970)."""
    tx.execute(f"DELETE FROM session WHERE {_IS_OVER}", _expiry_limits(tx))  # noqa: S608
    tx.execute("DELETE FROM staff_sign_in_failure WHERE at < :guessed", {"guessed": guessed_before})


def is_known_browser(reader: Reader, device_hash: bytes, staff_id: str | None = None) -> bool:
    """Whether the account has signed in with this browser before.

    If `staff_id` is None, a sign-in to any account counts.
    """
    sql = """SELECT 1 FROM staff_known_device
             WHERE hash = :hash AND (:staff_id IS NULL OR staff_id = :staff_id)"""
    return reader.row(sql, {"hash": device_hash, "staff_id": staff_id}) is not None


def add_failure(tx: Transaction, account: bytes, device: bytes) -> None:
    """Add one failed sign-in to the counter for this account and device."""
    sql = """INSERT INTO staff_sign_in_failure (account, device, wrong, at)
             VALUES (:account, :device, 1, :now)
             ON CONFLICT DO UPDATE SET wrong = wrong + 1, at = :now"""
    tx.execute(sql, {"account": account, "device": device, "now": tx.now})


def clear_failures(tx: Transaction, account: bytes, device: bytes | None = None) -> None:
    """Clear an account's failed sign-ins on one device, or on all devices if `device` is None."""
    sql = """DELETE FROM staff_sign_in_failure
             WHERE account = :account AND (:device IS NULL OR device = :device)"""
    tx.execute(sql, {"account": account, "device": device})


def _expiry_limits(reader: Reader) -> dict[str, int]:
    return {"seen": reader.now - IDLE_MILLISECONDS, "created": reader.now - LONGEST_MILLISECONDS}


def _session(id_: str, device: str, created_at: int, seen_at: int, *person: Any) -> Session:
    return Session(id_, StaffMember(*person), device, created_at, seen_at)


_UNKNOWN_BROWSER = b""  # all unknown browsers share one failure counter per account


@dataclass(frozen=True, slots=True)
class Try:
    """A sign-in attempt.

    `person` is the account with the typed name, or None. `account` and `device` together identify
    the failure counter.
    """

    person: StaffMember | None
    password_hash: str | None
    account: bytes
    device: bytes

    @property
    def is_strangers(self) -> bool:
        """Whether the account has never signed in with this browser."""
        return self.device == _UNKNOWN_BROWSER


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """The secrets for the two cookies of a new session. Only their hashes are stored."""

    secret: str
    device_secret: str


def begin_sign_in(tx: Transaction, name: str, device_secret: str | None) -> Try:
    """Start a sign-in attempt and count it as failed first, so that concurrent guesses all count.

    `open_session` clears the counter. Each browser in which the account has signed in before has
    its own counter, so wrong guesses in other browsers do not delay sign-ins there. Raises
    SignInLater if the delay after earlier failures has not passed yet.
    """
    account = account_hash(name)
    person = find_by_name(tx, name)
    password_hash = find_password(tx, person.id) if person else None
    device = _UNKNOWN_BROWSER
    if person is not None and device_secret:
        device_hash = hash_token(device_secret)
        if is_known_browser(tx, device_hash, person.id):
            device = device_hash
    count_try(tx, account, device, SignInLater)
    return Try(person, password_hash, account, device)


def count_try(tx: Transaction, account: bytes, device: bytes, refusal: type[SignInLater]) -> None:
    """Count one more failure for this account and device.

    If the delay after earlier failures has not passed yet, count nothing and raise `refusal` with
    the remaining seconds.
    """
    sql = (
        "SELECT wrong, at FROM staff_sign_in_failure WHERE account = :account AND device = :device"
    )
    wrong, at = tx.row(sql, {"account": account, "device": device}) or (0, 0)
    # Restart the counter if a day has passed since the last failure or the clock was set back.
    if at and not 0 <= tx.now - at < DAY_MS:
        clear_failures(tx, account, device)
        wrong = 0
    remaining = at + sign_in_delay(wrong) - tx.now
    if wrong and remaining > 0:
        raise refusal(seconds=-(-remaining // 1000))
    add_failure(tx, account, device)


def open_session(
    tx: Transaction, attempt: Try, device_secret: str | None, device: str
) -> OpenedSession:
    """Complete a successful sign-in: clear the failure counter and start a session."""
    assert attempt.person is not None  # noqa: S101 - a password was compared
    clear_failures(tx, attempt.account, attempt.device)
    record_audit(tx, f"staff:{attempt.person.id}", "signed_in", device=device)
    return start_session(tx, attempt.person.id, device_secret, device)


def note_wrong_password(tx: Transaction, attempt: Try) -> None:
    """Record a failed sign-in in the audit log, with the account if the typed name exists.

    Consecutive failures with unknown names are recorded at most once a minute. The sign-in delay
    does not limit their number, because it applies to each name separately.
    """
    if attempt.person is not None:
        record_audit(tx, NOBODY, "sign_in_failed", person=attempt.person.id)
        return
    for last in list_audit_entries(tx, 1):
        if (last.what, last.detail) == ("sign_in_failed", {}) and 0 <= tx.now - last.at < MINUTE_MS:
            return
    record_audit(tx, NOBODY, "sign_in_failed")


def still_fits(tx: Transaction, attempt: Try) -> bool:
    """Whether the account is still enabled and still has the password hash that was compared.

    The comparison is slow, so the account may have changed in the meantime.
    """
    assert attempt.person is not None  # noqa: S101 - a password was compared
    return find_password(tx, attempt.person.id) == attempt.password_hash


def right_password(tx: Transaction, attempt: Try) -> bool:
    """Clear the failure counter after a signed-in user has re-entered the right password.

    Return False and clear nothing if the password has changed or the account has been disabled in
    the meantime.
    """
    if not still_fits(tx, attempt):
        return False
    clear_failures(tx, attempt.account, attempt.device)
    return True


def start_session(
    tx: Transaction, staff_id: str, device_secret: str | None, device: str
) -> OpenedSession:
    """Start a session for an authenticated user, and remember the browser.

    The browser keeps its `device_secret` only if this box issued it. Otherwise, it gets a new one,
    because an attacker may have planted a known secret in the browser.
    """
    secret = tx.tokens.new_link_secret()
    if device_secret is None or not is_known_browser(tx, hash_token(device_secret)):
        device_secret = tx.tokens.new_link_secret()
    sql = """INSERT INTO staff_known_device (hash, staff_id, created_at)
             VALUES (:hash, :staff_id, :now) ON CONFLICT DO NOTHING"""
    tx.execute(sql, {"hash": hash_token(device_secret), "staff_id": staff_id, "now": tx.now})
    tx.insert(
        "session",
        {"hash": hash_token(secret), "id": tx.new_id(), "staff_id": staff_id, "device": device,
         "created_at": tx.now, "seen_at": tx.now},
    )  # fmt: skip
    return OpenedSession(secret, device_secret)


def sign_out(tx: Transaction, staff_id: str, session_id: str) -> bool:
    """End a session when its user signs out. Return whether the session existed."""
    record_audit(tx, f"staff:{staff_id}", "signed_out")
    return delete_session(tx, staff_id, session_id)


def change_password(
    tx: Transaction, staff_id: str, password_hash: str, *, session_id: str | None = None
) -> None:
    """Set a new password and end all of the account's sessions (docs/security.md, S6).

    `session_id` is the session in which the change was requested, if any. Raises ChangedMeanwhile
    if that session has ended in the meantime.
    """
    if session_id is not None and session_id not in {s.id for s in list_sessions(tx, staff_id)}:
        raise ChangedMeanwhile
    set_password(tx, staff_id, password_hash)
    delete_sessions(tx, staff_id)
    record_audit(tx, f"staff:{staff_id}", "password_changed")
