"""Sign in and out: attempts are counted before a password is checked (docs/security.md, S6, S9)."""

from dataclasses import dataclass

from appliance.actions.note_security import NOBODY, note_security
from appliance.house_errors import ChangedMeanwhile, SignInLater
from appliance.model.session import sign_in_delay
from appliance.model.staff import StaffMember
from appliance.store.connection import Transaction
from appliance.store.security_log import list_security_entries
from appliance.store.sessions import (
    add_failure,
    clear_failures,
    count_failures,
    delete_session,
    delete_sessions,
    is_known_device,
    list_sessions,
)
from appliance.store.staff import find_by_name, find_password, set_password
from appliance.tokens import account_hash, hash_token

_STRANGER = b""
_MINUTE = 60 * 1000
_DAY = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Try:
    """One try to sign in: whose name was typed, if anybody's, and in which row it is counted."""

    person: StaffMember | None
    password_hash: str | None
    account: bytes
    device: bytes

    @property
    def is_strangers(self) -> bool:
        """Whether the browser is none in which that person signed in before."""
        return self.device == _STRANGER


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """The secrets of a new session's two cookies; they are stored nowhere."""

    secret: str
    device_secret: str


def begin_sign_in(tx: Transaction, name: str, device_secret: str | None) -> Try:
    """Count a try as wrong until `open_session` says otherwise; SignInLater after too many.

    So guesses that are sent at the same time are all counted. A person's own browser has a
    count of its own: strangers who guess lock nobody out of it.
    """
    account = account_hash(name)
    found = find_by_name(tx, " ".join(name.split()))
    person, password_hash = found or (None, None)
    device = _STRANGER
    if person is not None and device_secret:
        device_hash = hash_token(device_secret)
        if is_known_device(tx, device_hash, person.id):
            device = device_hash
    count_try(tx, account, device, SignInLater)
    return Try(person, password_hash, account, device)


def count_try(tx: Transaction, account: bytes, device: bytes, refusal: type[SignInLater]) -> None:
    """Count one more as wrong, or refuse it after too many."""
    wrong, at = count_failures(tx, account, device)
    if at and not 0 <= tx.now - at < _DAY:  # a day has passed, or the clock was set back
        clear_failures(tx, account, device)
        wrong = 0
    left = at + sign_in_delay(wrong) - tx.now
    if wrong and left > 0:
        raise refusal(seconds=-(-left // 1000))
    add_failure(tx, account, device)


def open_session(
    tx: Transaction, attempt: Try, device_secret: str | None, device: str
) -> OpenedSession:
    """Everything asked for was right: a fresh session, and nothing was wrong before."""
    assert attempt.person is not None  # noqa: S101 - a password was compared
    clear_failures(tx, attempt.account, attempt.device)
    note_security(tx, f"staff:{attempt.person.id}", "signed_in", device=device)
    return start_session(tx, attempt.person.id, device_secret, device)


def note_wrong_password(tx: Transaction, attempt: Try) -> None:
    """A sign-in failed. Whose name was typed is noted only if it is somebody's here.

    Of names that nobody has, one line a minute says it: each may be typed without end, while
    those of the house soon have to wait.
    """
    if attempt.person is not None:
        note_security(tx, NOBODY, "sign_in_failed", person=attempt.person.id)
        return
    for last in list_security_entries(tx, 1):
        if (last.what, last.detail) == ("sign_in_failed", {}) and 0 <= tx.now - last.at < _MINUTE:
            return
    note_security(tx, NOBODY, "sign_in_failed")


def still_fits(tx: Transaction, attempt: Try) -> bool:
    """Whether the password that was compared is that person's still.

    Comparing takes a while, in which it may have been changed or the person sent away.
    """
    assert attempt.person is not None  # noqa: S101 - a password was compared
    return find_password(tx, attempt.person.id) == attempt.password_hash


def right_password(tx: Transaction, attempt: Try) -> bool:
    """Somebody who is signed in showed it once more: nothing was wrong before.

    False, and nothing is forgiven, where it was changed meanwhile.
    """
    if not still_fits(tx, attempt):
        return False
    clear_failures(tx, attempt.account, attempt.device)
    return True


def start_session(
    tx: Transaction, staff_id: str, device_secret: str | None, device: str
) -> OpenedSession:
    """A fresh session of somebody who has shown who they are."""
    secret = tx.tokens.new_link_secret()
    device_secret = device_secret or tx.tokens.new_link_secret()
    sql = """INSERT INTO known_device (hash, staff_id, created_at)
             VALUES (:hash, :staff_id, :now) ON CONFLICT DO NOTHING"""
    tx.execute(sql, {"hash": hash_token(device_secret), "staff_id": staff_id, "now": tx.now})
    tx.insert(
        "session",
        {"hash": hash_token(secret), "id": tx.new_id(), "staff_id": staff_id, "device": device,
         "created_at": tx.now, "seen_at": tx.now},
    )  # fmt: skip
    return OpenedSession(secret, device_secret)


def sign_out(tx: Transaction, staff_id: str, session_id: str) -> bool:
    """End one session; whether there was one."""
    note_security(tx, f"staff:{staff_id}", "signed_out")
    return delete_session(tx, staff_id, session_id)


def change_password(
    tx: Transaction, staff_id: str, password_hash: str, *, session_id: str | None = None
) -> None:
    """Set another password and end every session of that person (docs/security.md, S6).

    ChangedMeanwhile where `session_id`, which asks for it, was ended while it was hashed.
    """
    if session_id is not None and session_id not in {s.id for s in list_sessions(tx, staff_id)}:
        raise ChangedMeanwhile
    set_password(tx, staff_id, password_hash)
    delete_sessions(tx, staff_id)
    note_security(tx, f"staff:{staff_id}", "password_changed")
